package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// Traces of a family whose tensors are not described are compared in the order in which they were written.
func TestTracesOfAnotherFamily(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, last byte) string {
		path := filepath.Join(dir, name)
		w, err := capture.Create(path, capture.Manifest{Config: json.RawMessage(`{"model_type":"mamba"}`)}, 0)
		must(t, err)
		for _, e := range []hooks.Event{
			{Name: "input_ids", Tensor: hooks.Tensor{DType: hooks.I64, Shape: []int{1, 1}, Data: make([]byte, 8)}},
			{Name: "mixer", Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{1, 2}, Data: []byte{0, 0, 128, 63, 0, 0, 0, last}}},
		} {
			must(t, w.Observe(e))
		}
		must(t, w.Close())
		return path
	}
	a, b := write("a.safetensors", 64), write("b.safetensors", 65)
	for other, want := range map[string]int{a: exitMatch, b: exitMismatch} {
		var out, errOut bytes.Buffer
		if code := run([]string{"tracediff", "compare", a, other}, nil, &out, &errOut); code != want {
			t.Errorf("exit %d, want %d\n%s%s", code, want, out.String(), errOut.String())
		}
	}
}
