package capture_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	nlpodyssey "github.com/nlpodyssey/safetensors"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// Another reader of safetensors opens the trace after every append, and finds in it what was fired.
func TestOtherReaderBetweenAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.safetensors")
	w := create(t, path, declared, 300)
	var events []hooks.Event
	for _, e := range slices.Concat(some, snapshot) {
		e.Pass = len(events) // every key once
		if e.Tensor.DType == hooks.F8E5M2 {
			continue // the one type here that this reader does not have
		}
		events = append(events, e)
		fire(t, w, e)
		sameForOther(t, path+capture.Suffix, events)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sameForOther(t, path, events)
}

func sameForOther(t *testing.T, path string, events []hooks.Event) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := nlpodyssey.Deserialize(b)
	if err != nil {
		t.Fatalf("after %d appends: %v", len(events), err)
	}
	if file.Len() != len(events) {
		t.Fatalf("%d tensors, want %d", file.Len(), len(events))
	}
	for _, e := range events {
		x, ok := file.Tensor(capture.Key(e.Pass, e.Name, 0))
		if !ok {
			t.Fatalf("after %d appends: no %s", len(events), e.Name)
		}
		shape := make([]int, 0)
		for _, size := range x.Shape() {
			shape = append(shape, int(size))
		}
		if fmt.Sprint(shape) != fmt.Sprint(e.Tensor.Shape) && len(shape)+len(e.Tensor.Shape) > 0 {
			t.Errorf("%s: shape %v, want %v", e.Name, shape, e.Tensor.Shape)
		}
		if x.DType().String() != e.Tensor.DType.Safetensors() || !bytes.Equal(x.Data(), e.Tensor.Data) {
			t.Errorf("%s: %s %v, want %v", e.Name, x.DType(), x.Data(), e.Tensor)
		}
	}
}

// snapshot is what the files in testdata/snapshots have the beginning of; their names say how much. The official
// Python package opens them in hooks/python/tests/test_go_traces.py, which has the same list.
var snapshot = []hooks.Event{
	event(0, "input_ids", tensor(0, hooks.I64, 1, 4)),
	event(0, "embed_tokens", tensor(1, hooks.BF16, 1, 4, 3)),
	event(0, "layers.0.input_layernorm", tensor(2, hooks.F32, 1, 4, 3)),
	event(0, "layers.0.empty", tensor(3, hooks.F16, 0, 3)),
	event(0, "layers.0.scale", tensor(4, hooks.F64)),
	event(0, "layers.0.input_layernorm", tensor(5, hooks.F32, 1, 4, 3)),
	event(0, "mask.full", tensor(6, hooks.Bool, 4)),
	event(1, "input_ids", tensor(7, hooks.I64, 1, 1)),
	event(1, "layers.0.input_layernorm", tensor(8, hooks.F16, 1, 1, 3)),
	event(12, `größe "木"`, tensor(9, hooks.U8, 2, 2)),
}

// The bytes of a trace are the format. They change only when somebody means it, with -update.
func TestSnapshots(t *testing.T) {
	m := capture.Manifest{Side: "local", Producer: capture.Producer{Name: "tracediff", Version: "0"}, Prompt: "Grüße, \"Welt\""}
	path := filepath.Join(t.TempDir(), "run.safetensors")
	// So little reserve that the header overflows at the fifth tensor.
	w := create(t, path, m, 260)
	for n := range len(snapshot) + 1 {
		if n > 0 {
			fire(t, w, snapshot[n-1])
		}
		if slices.Contains([]int{0, 1, 4, 5, 10}, n) {
			compareSnapshot(t, path+capture.Suffix, fmt.Sprintf("open-%d.safetensors", n))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	compareSnapshot(t, path, "complete-10.safetensors")

	w = create(t, path, m, 260)
	fire(t, w, snapshot[:2]...)
	if err := w.Fail(fmt.Errorf("größe 木")); err != nil {
		t.Fatal(err)
	}
	compareSnapshot(t, path+capture.Suffix, "failed-2.safetensors")
}

func compareSnapshot(t *testing.T, path, name string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "snapshots", name)
	if *update {
		if err := os.WriteFile(golden, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is no longer what the writer makes; -update writes it anew\nwas %q\nis  %q", golden, want, got)
	}
}
