package testengine

import (
	"bytes"
	"io/fs"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
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
