package inspect_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
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
		data = appendValue(data, d, values[min(i, len(values)-1)])
	}
	return checkpointtest.Tensor{Name: name, Tensor: hooks.Tensor{DType: d, Shape: shape, Data: data}}
}

func appendValue(b []byte, d hooks.DType, v float64) []byte {
	le := binary.LittleEndian
	switch d {
	case hooks.F64:
		return le.AppendUint64(b, math.Float64bits(v))
	case hooks.F32:
		return le.AppendUint32(b, math.Float32bits(float32(v)))
	case hooks.F16:
		return le.AppendUint16(b, floats.F16(float32(v)))
	case hooks.BF16:
		return le.AppendUint16(b, floats.BF16(float32(v)))
	case hooks.F8E4M3:
		return append(b, floats.F8E4M3(float32(v)))
	case hooks.F8E5M2:
		return append(b, floats.F8E5M2(float32(v)))
	case hooks.I64, hooks.U64:
		return le.AppendUint64(b, uint64(int64(v)))
	case hooks.I32, hooks.U32:
		return le.AppendUint32(b, uint32(int64(v)))
	case hooks.I16, hooks.U16:
		return le.AppendUint16(b, uint16(int64(v)))
	}
	return append(b, byte(int64(v)))
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
