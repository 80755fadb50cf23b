package testengine

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// OpenGolden opens an embedded trace that transformers made: golden/CHECKPOINT/PROMPT.DTYPE.safetensors.
func OpenGolden(t testing.TB, name string) *capture.Trace {
	t.Helper()
	data, err := fs.ReadFile(ondisk.Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := capture.OpenReader(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// LocalModel runs the built-in model on a case, and opens its trace.
func LocalModel(t testing.TB, c ordertest.Case, dtype hooks.DType) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "local.safetensors")
	_, err := gemma.Capture(context.Background(), gemma.Job{
		Checkpoint: c.Checkpoint, List: c.List, DType: dtype, Passes: c.Passes, Path: path,
		Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Open(t, path)
}

// LocalRun runs the built-in model on the ids of a golden, with what reg puts into its way, and opens its trace.
func LocalRun(t testing.TB, name string, ref *capture.Trace, reg *hooks.Registry) (*capture.Trace, *order.List) {
	t.Helper()
	ck, list := ordertest.Embedded(t, name)
	passes, err := ref.IDs()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "local.safetensors")
	_, err = gemma.Capture(context.Background(), gemma.Job{
		Checkpoint: ck, List: list, DType: ref.Manifest().DType, Passes: passes, Path: path, Registry: reg,
		Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Open(t, path), list
}

// Replacer changes each element of a tensor in one pass: do gets the index along each axis, and the value.
func Replacer(pass int, do func(at []int, v float64) float64) hooks.Replacer {
	return func(e hooks.Event) (hooks.Tensor, error) {
		if e.Pass != pass {
			return hooks.Tensor{}, nil
		}
		values, at := ValuesOf(e.Tensor), make([]int, len(e.Tensor.Shape))
		for i := range values {
			rest := i
			for axis := len(at) - 1; axis >= 0; axis-- {
				at[axis], rest = rest%e.Tensor.Shape[axis], rest/e.Tensor.Shape[axis]
			}
			values[i] = do(at, values[i])
		}
		return Fire(e.Name, e.Tensor.DType, e.Tensor.Shape, values...).Tensor, nil
	}
}

// Main runs the tests of a package that goes through small models thousands of times, with a heap of some MiB: the garbage
// collector would take a third of the processor's time. It has its way if GOGC is set.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// E2B is the checkpoint that TRACEDIFF_E2B names, its order, and a prompt of 16 tokens. A test without it is skipped.
func E2B(t testing.TB) (*checkpoint.Checkpoint, *order.List, ordertest.Case) {
	dir := os.Getenv("TRACEDIFF_E2B")
	if dir == "" {
		t.Skip("needs TRACEDIFF_E2B: the checkpoint that python fixtures/e2b.py makes")
	}
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ck.Close() })
	config, err := order.ReadConfig(ck.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return ck, list, ordertest.Case{Checkpoint: ck, List: list, Passes: [][]int{{2, 4050, 651, 17, 1024, 3999, 4000, 90, 333, 2048, 5, 777, 1500, 64, 2900, 8}}}
}
