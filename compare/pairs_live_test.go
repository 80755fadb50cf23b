package compare_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/order/ordertest"
)

// liveRun is a random model as transformers runs it.
type liveRun struct {
	family string
	seed   int
	dtype  hooks.DType
	args   []string // of the runner
}

func (r liveRun) trace() string { return r.args[len(r.args)-1] }

// Transformers against the walk on random models of the families that the built-in model does not run: here the
// healthy port is transformers itself. The interpreter that TRACEDIFF_PYTHON names has to have it.
func TestHealthyPairsOfTransformers(t *testing.T) {
	interpreter := os.Getenv("TRACEDIFF_PYTHON")
	if interpreter == "" {
		t.Skip("needs TRACEDIFF_PYTHON: an interpreter that has torch and transformers")
	}
	seeds, err := strconv.Atoi(cmp.Or(os.Getenv(pairSeeds), strconv.Itoa(samplePairs)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var runs []liveRun
	var args [][]string
	for _, family := range ordertest.Plain {
		for seed := range seeds {
			for _, r := range writeLive(t, filepath.Join(dir, fmt.Sprint(family, seed)), family, seed) {
				runs, args = append(runs, r), append(args, r.args)
			}
		}
	}
	runTransformers(t, interpreter, dir, args)
	all := map[string]*healthy{}
	for _, r := range runs {
		h := all[r.family]
		if h == nil {
			h = &healthy{}
			all[r.family] = h
		}
		c := ordertest.Draw(t, r.family, r.seed)
		t.Run(fmt.Sprint(r.family, r.seed, r.dtype), func(t *testing.T) { h.judge(t, c, open(t, r.trace())) })
	}
	for family, h := range all {
		t.Log(family)
		h.log(t)
	}
}

// writeLive makes a model directory of a case and says how transformers is to be run on it.
func writeLive(t *testing.T, dir, family string, seed int) []liveRun {
	t.Helper()
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	c := ordertest.Draw(t, family, seed)
	checkpointtest.Write(t, dir, c.Config, c.Weights, 1)
	f, err := os.Create(filepath.Join(dir, "order.json"))
	if err == nil {
		err = json.NewEncoder(f).Encode(c.List)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	var runs []liveRun
	for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16} {
		runs = append(runs, liveRun{family, seed, dtype, []string{
			"--model", dir, "--order", f.Name(), "--dtype", dtype.String(), "--tokens", reference.FormatTokens(c.Passes),
			"--out", filepath.Join(dir, dtype.String()+".safetensors"),
		}})
	}
	return runs
}

// runTransformers runs transformers with each of some lists of arguments, in one process.
func runTransformers(t *testing.T, interpreter, dir string, runs [][]string) {
	t.Helper()
	var lines []byte
	for _, args := range runs {
		line, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	file := filepath.Join(dir, "runs.jsonl")
	if err := os.WriteFile(file, lines, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(interpreter, "../fixtures/runs.py", file)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../hooks/python", "PYTHONDONTWRITEBYTECODE=1", "ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
