package reference_test

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// wanted describes a golden itself: everything fits.
func wanted(t *testing.T, tr *capture.Trace) reference.Wanted {
	t.Helper()
	passes, err := tr.IDs()
	if err != nil {
		t.Fatal(err)
	}
	m := tr.Manifest()
	return reference.Wanted{Config: m.Config, Model: m.Model, Weights: m.Weights, DType: m.DType, Passes: passes, Scope: capture.Scope{Level: 3}, Entries: m.Entries}
}

// Every golden is found by what it is of, and by its prompt and number of steps.
func TestGoldenIsFound(t *testing.T) {
	for _, name := range []string{"what.float32", "hello.bfloat16", "window.float32", "decode.bfloat16", "control.float32"} {
		w := wanted(t, testengine.OpenGolden(t, "golden/gemma3n-tiny/"+name+".safetensors"))
		found, passes, err := reference.Golden(ondisk.Files(), "*", w)
		if err != nil || found == nil || !strings.HasSuffix(found.Path(), name+".safetensors") || len(passes) != len(w.Passes) {
			t.Errorf("%s: found %v, %d passes, %v", name, found, len(passes), err)
		}
		w.Weights = "unknown" // never gates
		if found, _, err := reference.Golden(ondisk.Files(), "*", w); err != nil || found == nil {
			t.Errorf("%s with unknown weights: %v, %v", name, found, err)
		}
	}
	w := wanted(t, testengine.OpenGolden(t, "golden/gemma3n-tiny/decode.float32.safetensors"))
	steps := w.Passes
	w.Passes, w.NewTokens = steps[:1], 3
	_, passes, err := reference.Golden(ondisk.Files(), "*", w)
	if err != nil || len(passes) != 4 || passes[3][0] != steps[3][0] {
		t.Errorf("the prompt and 3 tokens: passes %v, %v; want the first 4 of %v", passes, err, steps)
	}
}

// What does not fit is refused with the reason.
func TestFitsRefuses(t *testing.T) {
	tr := testengine.OpenGolden(t, "golden/gemma3n-tiny/hello.float32.safetensors")
	for want, change := range map[string]func(*reference.Wanted){
		"another configuration": func(w *reference.Wanted) {
			w.Config = json.RawMessage(strings.Replace(string(w.Config), `"sliding_window":4`, `"sliding_window":5`, 1))
		},
		"other weights":                         func(w *reference.Wanted) { w.Weights = "sha256:" + strings.Repeat("0", 64) },
		"in float32, not in":                    func(w *reference.Wanted) { w.DType = hooks.BF16 },
		"other token ids":                       func(w *reference.Wanted) { w.Passes = [][]int{{2, 3, 4}} },
		"passes is 1, 2 are":                    func(w *reference.Wanted) { w.NewTokens = 1 },
		"passes is 1, 3 are":                    func(w *reference.Wanted) { w.Passes = append(w.Passes, []int{1}, []int{2}) },
		"weights of this size are not compared": func(w *reference.Wanted) { w.Weights, w.Model = "unknown", "elsewhere/another" },
		"in another order": func(w *reference.Wanted) {
			w.Entries = slices.Clone(w.Entries)
			w.Entries[3], w.Entries[4] = w.Entries[4], w.Entries[3]
		},
		"leaves out 1 of": func(w *reference.Wanted) { w.Entries = append([]string{"mine"}, w.Entries...) },
	} {
		w := wanted(t, tr)
		change(&w)
		if _, err := w.Fits(tr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a refusal with %q", err, want)
		}
		if found, _, err := reference.Golden(ondisk.Files(), "*", w); err != nil || found != nil && want != "in float32, not in" {
			t.Errorf("%s: a golden was found all the same: %v, %v", want, found, err)
		}
	}
}

// A trace that was not finished, that does not say of what it is, or that was narrowed is no reference.
func TestFitsRefusesPoorTraces(t *testing.T) {
	full := testengine.OpenGolden(t, "golden/gemma3n-tiny/hello.float32.safetensors")
	w := wanted(t, full)
	write := func(m capture.Manifest, finish bool) *capture.Trace {
		path := filepath.Join(t.TempDir(), "t.safetensors")
		out, err := capture.Create(path, m, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := full.Lookup(0, "input_ids")
		ids, err := full.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Observe(hooks.Event{Name: "input_ids", Tensor: ids}); err != nil {
			t.Fatal(err)
		}
		if finish {
			err = out.Close()
		} else {
			err = out.Fail(fs.ErrClosed)
			path += capture.Suffix
		}
		if err != nil {
			t.Fatal(err)
		}
		tr, err := capture.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		return tr
	}
	m := full.Manifest()
	if _, err := w.Fits(write(m, false)); err == nil || !strings.Contains(err.Error(), "not complete") {
		t.Errorf("unfinished: %v", err)
	}
	bare := m
	bare.Config = nil
	if _, err := w.Fits(write(bare, true)); err == nil || !strings.Contains(err.Error(), "does not name its configuration") {
		t.Errorf("without a configuration: %v", err)
	}
	narrow := m
	narrow.Scope.Positions = capture.Ranges{{From: 0, To: 0}}
	if _, err := w.Fits(write(narrow, true)); err == nil || !strings.Contains(err.Error(), "positions 0 only") {
		t.Errorf("one position: %v", err)
	}
	narrow = m
	narrow.Scope.Passes = capture.Ranges{{From: 1, To: 1}}
	if _, err := w.Fits(write(narrow, true)); err == nil || !strings.Contains(err.Error(), "passes 1 only") {
		t.Errorf("one pass: %v", err)
	}
	if passes, err := w.Fits(write(m, true)); err != nil || len(passes) != 1 {
		t.Errorf("the same as a whole: %v, %v", passes, err)
	}
}
