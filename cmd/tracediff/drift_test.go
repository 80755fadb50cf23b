package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/ordertest"
)

// driftModels is the environment variable with the number of random models of each family in the live test.
const driftModels = "TRACEDIFF_DRIFT"

// decodeSteps is the number of passes of one token that follow the prompt.
const decodeSteps = 4

// drift adds up the comparisons of healthy pairs of one family.
type drift struct {
	mu         sync.Mutex
	pairs      int
	entries    int // rows that gate
	past       int // of these, past an accumulated limit
	excused    int // of these, matches because every operation on the way is certified on both sides
	mismatches int
	failed     int // pairs with an exit status other than 0
}

// drifts has the counts by family.
type drifts map[string]*drift

// log prints one line a family.
func (all drifts) log(t *testing.T) {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n| family | pairs | entries | past the limit | excused | mismatches | pairs that fail |\n|---|---|---|---|---|---|---|\n")
	sum := &drift{}
	line := func(name string, d *drift) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d |\n", name, d.pairs, d.entries, d.past, d.excused, d.mismatches, d.failed)
	}
	for _, family := range slices.Concat(ordertest.Gemma, ordertest.Plain) {
		if d := all[family]; d != nil {
			line(family, d)
			sum.pairs, sum.entries, sum.past = sum.pairs+d.pairs, sum.entries+d.entries, sum.past+d.past
			sum.excused, sum.mismatches, sum.failed = sum.excused+d.excused, sum.mismatches+d.mismatches, sum.failed+d.failed
		}
	}
	line("all", sum)
	t.Log(b.String())
}

// compareJSON runs `tracediff compare` and decodes its result.
func compareJSON(t *testing.T, args ...string) (int, *compare.Result) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(append([]string{"tracediff", "compare", "--format", "json"}, args...), nil, &out, &errOut)
	var d report.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || len(d.Runs) != 1 || d.Runs[0].Result == nil {
		t.Fatalf("exit %d, no result (%v)\n%s%s", code, err, out.String(), errOut.String())
	}
	return code, d.Runs[0].Result
}

// add compares a healthy pair as a person would, and fails the test for each mismatch. The comparison goes on after the
// first one, so that all are counted.
func (d *drift) add(t *testing.T, args ...string) {
	t.Helper()
	code, r := compareJSON(t, append(args, "--all")...)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pairs++
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Derived {
			continue
		}
		d.entries++
		if row.Gate != nil && !row.Gate.Passed() {
			d.past++
		}
		if slices.ContainsFunc(row.Notes, func(n compare.Note) bool { return n.Kind == compare.Drift }) {
			d.excused++
		}
		if row.Verdict != compare.Match {
			d.mismatches++
		}
	}
	if code == exitMatch {
		return
	}
	d.failed++
	first := fmt.Sprintf("incomplete: %q", r.Incomplete)
	if at := slices.IndexFunc(r.Rows, func(row compare.Row) bool { return row.Verdict != compare.Match && !row.Derived }); at >= 0 {
		row := &r.Rows[at]
		first = fmt.Sprintf("%s %s %s: %s", row.Key(), row.Verdict, row.Class, row.Detail)
	}
	t.Errorf("exit %d, %d mismatches, the first: %s", code, r.Mismatches, first)
}

// driftCase is a random model in a directory, with a prompt and four decode steps.
type driftCase struct {
	ordertest.Case
	dir string
}

func drawDrift(t *testing.T, family string, seed int, dir string) driftCase {
	t.Helper()
	c := ordertest.DrawWith(t, family, seed, ordertest.Acceptable)
	rng := rand.New(rand.NewPCG(uint64(seed), 300))
	c.Passes = make([][]int, 1+decodeSteps)
	for pass := range c.Passes {
		n := 1
		if pass == 0 {
			n = 1 + rng.IntN(16)
		}
		for range n {
			c.Passes[pass] = append(c.Passes[pass], rng.IntN(c.List.Config.VocabSize))
		}
	}
	must(t, os.MkdirAll(dir, 0o777))
	if seed%4 == 1 {
		sharpen(c.Weights)
	}
	checkpointtest.Write(t, dir, c.Config, c.Weights, 1)
	var err error
	c.Checkpoint, err = checkpoint.Open(dir)
	must(t, err)
	t.Cleanup(func() { c.Checkpoint.Close() })
	return driftCase{c, dir}
}

// sharpen makes keys sixteen times as large, so that attention picks one of them: rounding decides between two that are
// nearly as good, and everything behind drifts.
func sharpen(weights []checkpointtest.Tensor) {
	normed := slices.ContainsFunc(weights, func(w checkpointtest.Tensor) bool { return strings.HasSuffix(w.Name, ".k_norm.weight") })
	for i := range weights {
		w := &weights[i]
		if strings.HasSuffix(w.Name, ".k_norm.weight") || !normed && strings.HasSuffix(w.Name, ".k_proj.weight") {
			v := make([]float64, len(w.Data)/w.DType.Size())
			if err := floats.Decode(v, w.DType, w.Data); err != nil {
				panic(err)
			}
			w.Data = nil
			for _, x := range v {
				switch x *= 16; w.DType {
				case hooks.F16:
					w.Data = binary.LittleEndian.AppendUint16(w.Data, floats.F16(float32(x)))
				case hooks.BF16:
					w.Data = binary.LittleEndian.AppendUint16(w.Data, floats.BF16(float32(x)))
				default:
					w.Data = binary.LittleEndian.AppendUint32(w.Data, math.Float32bits(float32(x)))
				}
			}
		}
	}
}

// local is the path of the built-in model's trace in a dtype.
func (c driftCase) local(t *testing.T, dtype hooks.DType) string {
	t.Helper()
	path := filepath.Join(c.dir, "local-"+dtype.String()+".safetensors")
	_, err := gemma.Capture(context.Background(), gemma.Job{
		Checkpoint: c.Checkpoint, List: c.List, DType: dtype, Passes: c.Passes, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	})
	must(t, err)
	return path
}

// walk is the path of the walk's trace in a dtype.
func (c driftCase) walk(t *testing.T, dtype hooks.DType) string {
	t.Helper()
	path := filepath.Join(c.dir, "walk-"+dtype.String()+".safetensors")
	_, err := reference.Walk(context.Background(), reference.Job{
		Checkpoint: c.Checkpoint, List: c.List, DType: dtype, Passes: c.Passes, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	})
	must(t, err)
	return path
}

// driftSample is the number of random models of each Gemma family that are tested without Python.
const driftSample = 2

func driftCount(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv(driftModels)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// A model in bfloat16 against the same model in float32, over a prompt and four decode steps, is no mismatch, however far
// their errors accumulate: every operation is right on both sides.
func TestDriftIsNoMismatch(t *testing.T) {
	t.Parallel()
	all := drifts{}
	for _, family := range ordertest.Gemma {
		all[family] = &drift{}
	}
	t.Run("pairs", func(t *testing.T) {
		for family, d := range all {
			for seed := range driftCount(t, driftSample) {
				t.Run(fmt.Sprintf("%s %d", family, seed), func(t *testing.T) {
					t.Parallel()
					c := drawDrift(t, family, seed, t.TempDir())
					narrow, wide := c.local(t, hooks.BF16), c.local(t, hooks.F32)
					d.add(t, narrow, wide, "--model", c.dir)
					d.add(t, wide, c.walk(t, hooks.BF16), "--model", c.dir)
				})
			}
		}
	})
	all.log(t)
}

// Transformers' own traces in two dtypes are no mismatch either, in any family; and a limit that they are past is what
// drift is, whoever set it.
func TestDriftOfGoldensIsNoMismatch(t *testing.T) {
	t.Parallel()
	all, strict := drifts{}, drifts{}
	for _, family := range slices.Concat(ordertest.Gemma, ordertest.Plain) {
		dir := strings.TrimSuffix(family, "_text") + "-tiny"
		all[family], strict[family] = &drift{}, &drift{}
		t.Run(family, func(t *testing.T) {
			narrow, _, _, _ := goldenFile(t, dir, "decode.bfloat16")
			wide, _, _, _ := goldenFile(t, dir, "decode.float32")
			all[family].add(t, narrow, wide)
			all[family].add(t, wide, narrow)
			strict[family].add(t, narrow, wide, "--rtol", "0.002")
		})
		if strict[family].excused == 0 {
			t.Errorf("%s: none of %d entries is past a limit of 0.002", family, strict[family].entries)
		}
	}
	all.log(t)
	strict.log(t)
}

// driftPrompts are the numbers of prompts of the built-in model, and of the port with other norms for each Gemma family: in
// a sample, and where TRACEDIFF_DRIFT asks for all.
var driftPrompts = map[bool][2]int{false: {4, 2}, true: {16, 5}}

// Ordinary prompts of the built-in model with four decode steps, in the checkpoint's dtype.
func TestDriftOfEmbeddedModelIsNoMismatch(t *testing.T) {
	t.Parallel()
	d := &drift{}
	rng := rand.New(rand.NewPCG(16, 4))
	for n := range driftPrompts[os.Getenv(driftModels) != ""][0] {
		passes := make([][]int, 1)
		for range 1 + rng.IntN(12) {
			passes[0] = append(passes[0], 2+rng.IntN(1000))
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			d.add(t, "--dir", t.TempDir(), "--tokens", tokensOf(passes), "--max-new-tokens", strconv.Itoa(decodeSteps), "--level", "3")
		})
	}
	drifts{"gemma3n_text": d}.log(t)
}

// A port that rounds what it has normed before it multiplies with the weight, as many do, against the built-in model, which
// does not: over the tiny checkpoints, and random prompts with four decode steps.
func TestDriftOfOtherNormsIsNoMismatch(t *testing.T) {
	t.Parallel()
	all := drifts{}
	rng := rand.New(rand.NewPCG(20, 7))
	for _, family := range ordertest.Gemma {
		dir := strings.TrimSuffix(family, "_text") + "-tiny"
		d := &drift{}
		all[family] = d
		_, _, ck, list := goldenFile(t, dir, "decode.bfloat16") // of Gemma 3n, the second prompt drifts
		for n := range driftPrompts[os.Getenv(driftModels) != ""][1] {
			passes := make([][]int, 1+decodeSteps)
			for pass := range passes {
				for range 1 + rng.IntN(8) {
					if len(passes[pass]) == 0 || pass == 0 {
						passes[pass] = append(passes[pass], rng.IntN(list.Config.VocabSize))
					}
				}
			}
			t.Run(fmt.Sprintf("%s %d", family, n), func(t *testing.T) {
				port := &otherEngine{list: list, dtype: hooks.BF16, norms: true}
				path := filepath.Join(t.TempDir(), "local.safetensors")
				_, err := gemma.Capture(context.Background(), gemma.Job{
					Checkpoint: ck, List: list, DType: hooks.BF16, Passes: passes, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
				})
				must(t, err)
				d.add(t, port.run(t, ck, passes), path)
			})
		}
	}
	all.log(t)
}
