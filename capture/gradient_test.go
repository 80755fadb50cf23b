package capture_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// Gradients have the names of what they are gradients of, behind a prefix, in any pass; behind it a name is as any other.
func TestGradientsHaveNames(t *testing.T) {
	x := hooks.Tensor{DType: hooks.F32, Shape: []int{1}, Data: []byte{0, 0, 128, 63}}
	path := filepath.Join(t.TempDir(), "training.safetensors")
	w, err := capture.Create(path, capture.Manifest{Scope: capture.Scope{Level: 1}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for pass := range 2 {
		for _, name := range []string{"grad/head.weight", "grad/head.weight", "head.weight"} {
			if err := w.Observe(hooks.Event{Name: name, Pass: pass, Tensor: x}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	trace, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	for i, want := range []string{"grad/head.weight", "grad/head.weight#1", "head.weight", "pass1/grad/head.weight", "pass1/grad/head.weight#1", "pass1/head.weight"} {
		if r := trace.Records()[i]; r.Key != want {
			t.Errorf("tensor %d is %q, want %q", i, r.Key, want)
		}
	}
	if r, ok := trace.LookupFiring(1, "grad/head.weight", 1); !ok || r.Pass != 1 || r.Firing != 1 {
		t.Errorf("the second firing of pass 1 is %+v, %v", r, ok)
	}
	for _, name := range []string{"grad/", "grad/a/b", "grad/grad/a", "grads/a", "grad/__metadata__"} {
		w, err := capture.Create(path, capture.Manifest{Scope: capture.Scope{Level: 1}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Observe(hooks.Event{Name: name, Tensor: x}); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
		if err := w.Fail(errors.New("refused")); err != nil {
			t.Error(err)
		}
	}
}
