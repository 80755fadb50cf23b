package inspect_test

import (
	"bytes"
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// tensor has these values, of which the last is repeated until the shape is full.
func tensor(name string, d hooks.DType, shape []int, values ...float64) checkpointtest.Tensor {
	n, ok := hooks.Elements(shape)
	if !ok {
		panic(name)
	}
	data := []byte{}
	for i := range n {
		data = floats.Append(data, d, values[min(i, len(values)-1)])
	}
	return checkpointtest.Tensor{Name: name, Tensor: hooks.Tensor{DType: d, Shape: shape, Data: data}}
}

// file is a safetensors file without metadata.
func file(tensors ...checkpointtest.Tensor) []byte { return checkpointtest.File(tensors) }

func open(t testing.TB, data []byte) *capture.Trace {
	t.Helper()
	tr, err := capture.OpenReader("made.safetensors", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// one looks at one tensor in full.
func one(t testing.TB, tr *capture.Trace, o inspect.Options) *inspect.Tensor {
	t.Helper()
	r, err := inspect.Run(context.Background(), tr, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tensors) != 1 {
		t.Fatalf("%d tensors in full", len(r.Tensors))
	}
	return &r.Tensors[0]
}

func openRapid(t *rapid.T, data []byte) *capture.Trace {
	tr, err := capture.OpenReader("made.safetensors", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
