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

// LocalModel runs the local model on a case, and opens its trace.
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

// Main runs the tests of a package that goes through small models thousands of times, with a heap of some MiB: the garbage
// collector would take a third of the processor's time. It has its way if GOGC is set.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
