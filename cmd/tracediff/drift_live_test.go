package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/ordertest"
)

// liveDriftSample is the number of random models of each family without TRACEDIFF_DRIFT. Each makes five pairs.
const liveDriftSample = 2

// driftWorkers is the number of Python processes. Each captures many models on one core.
const driftWorkers = 2

// Transformers in bfloat16 against transformers in float32, and against the built-in model and the walk in the other dtype:
// in no family is drift a mismatch, and in every family some entries drift past their limits.
func TestDriftOfTransformersIsNoMismatch(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	interpreter := os.Getenv("TRACEDIFF_PYTHON")
	if interpreter == "" {
		t.Skip("needs TRACEDIFF_PYTHON: an interpreter that has torch and transformers")
	}
	seeds := driftCount(t, liveDriftSample)
	dir := t.TempDir()
	var cases []driftCase
	for _, family := range slices.Concat(ordertest.Gemma, ordertest.Plain) {
		for seed := range seeds {
			cases = append(cases, drawDrift(t, family, seed, filepath.Join(dir, fmt.Sprintf("%s-%d", family, seed))))
		}
	}
	runTransformers(t, interpreter, dir, cases)
	all := drifts{}
	t.Run("pairs", func(t *testing.T) {
		for _, c := range cases {
			if all[c.Family] == nil {
				all[c.Family] = &drift{}
			}
			d := all[c.Family]
			t.Run(filepath.Base(c.dir), func(t *testing.T) {
				t.Parallel()
				own := c.local
				if slices.Contains(ordertest.Plain, c.Family) {
					own = c.walk
				}
				narrow, wide := c.transformers(hooks.BF16), c.transformers(hooks.F32)
				d.add(t, narrow, wide, "--model", c.dir)
				d.add(t, wide, narrow, "--model", c.dir)
				d.add(t, own(t, hooks.BF16), wide, "--model", c.dir)
				ownWide := own(t, hooks.F32)
				d.add(t, ownWide, narrow, "--model", c.dir)
				d.add(t, ownWide, wide, "--model", c.dir) // the limits are narrower than many bounds
			})
		}
	})
	all.log(t)
	for family, d := range all {
		if d.excused == 0 && seeds > liveDriftSample {
			t.Errorf("%s: of %d entries none drifted over its limit: nothing was tested", family, d.entries)
		}
	}
}

// transformers is the path of transformers' trace in a dtype.
func (c driftCase) transformers(dtype hooks.DType) string {
	return filepath.Join(c.dir, "hf-"+dtype.String()+".safetensors")
}

// runTransformers captures all cases in both dtypes, in a few processes: importing torch takes longer than a tiny model.
func runTransformers(t *testing.T, interpreter, dir string, cases []driftCase) {
	t.Helper()
	python, err := filepath.Abs("../../hooks/python")
	must(t, err)
	files := make([]bytes.Buffer, driftWorkers)
	for n, c := range cases {
		list, err := json.Marshal(c.List)
		must(t, err)
		file := filepath.Join(c.dir, "order.json")
		must(t, os.WriteFile(file, list, 0o666))
		for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16} {
			must(t, json.NewEncoder(&files[n%driftWorkers]).Encode([]string{
				"--model", c.dir, "--order", file, "--dtype", dtype.String(), "--tokens", reference.FormatTokens(c.Passes), "--out", c.transformers(dtype),
			}))
		}
	}
	var wait sync.WaitGroup
	for n := range files {
		file := filepath.Join(dir, fmt.Sprintf("runs%d.jsonl", n))
		must(t, os.WriteFile(file, files[n].Bytes(), 0o666))
		wait.Go(func() {
			cmd := exec.Command(interpreter, "../../fixtures/runs.py", file)
			cmd.Env = append(os.Environ(), "PYTHONPATH="+python, "PYTHONDONTWRITEBYTECODE=1", "ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if wait.Wait(); t.Failed() {
		t.FailNow()
	}
}
