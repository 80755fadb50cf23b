package tensors

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Tensor is a tensor of a dump or of a reference, or one that was computed.
type Tensor struct {
	Key   string // no other tensor of its side has it
	Shape []int
	DType hooks.DType
	data  io.ReaderAt
}

// New is a tensor whose elements lie row-major in data.
func New(key string, shape []int, dtype hooks.DType, data io.ReaderAt) Tensor {
	return Tensor{key, shape, dtype, data}
}

// OfValues is a float64 tensor.
func OfValues(key string, shape []int, values []float64) Tensor {
	return Tensor{key, shape, hooks.F64, bytes.NewReader(floats.Append(nil, hooks.F64, values...))}
}

// OfSource is a tensor of a dump.
func OfSource(s *capture.Source) Tensor { return Tensor{s.Key, s.Shape, s.DType, s.Data} }

// OfTrace is a tensor of a trace.
func OfTrace(t *capture.Trace, r capture.Record) Tensor {
	return Tensor{r.Key, r.Shape, r.DType, record{t, r}}
}

type record struct {
	t *capture.Trace
	r capture.Record
}

func (x record) ReadAt(p []byte, off int64) (int, error) { return x.t.ReadAt(x.r, p, off) }

// LastRow is the last row of a tensor of one batch, [1, T, C]; ok is false for a tensor of another shape.
func (x Tensor) LastRow() (row Tensor, ok bool) {
	if len(x.Shape) != 3 || x.Shape[0] != 1 || x.Shape[1] < 1 {
		return Tensor{}, false
	}
	width := int64(x.Shape[2]) * int64(x.DType.Size())
	from := int64(x.Shape[1]-1) * width
	return Tensor{x.Key + "\x00last", []int{1, 1, x.Shape[2]}, x.DType, io.NewSectionReader(x.data, from, width)}, true
}

// Floats are the first n elements as float64.
func (x Tensor) Floats(n int) ([]float64, error) {
	raw := make([]byte, n*x.DType.Size())
	if got, err := x.data.ReadAt(raw, 0); got < len(raw) {
		return nil, fmt.Errorf("reading %q: %w", strings.TrimRight(x.Key, "\x00"), err)
	}
	values := make([]float64, n)
	return values, floats.Decode(values, x.DType, raw)
}

// maxTokens bounds the integers of a tensor that may be the ids of a pass.
const maxTokens = 1 << 20

// Integers are the elements of a tensor of integers; nil for any other tensor, and for one that is too long.
func (x Tensor) Integers() ([]int64, error) {
	n, ok := hooks.Elements(x.Shape)
	if !ok || n == 0 || n > maxTokens || !x.DType.Integer() {
		return nil, nil
	}
	values, err := x.Floats(n)
	if err != nil {
		return nil, err
	}
	out := make([]int64, n)
	for i, v := range values {
		out[i] = int64(v)
	}
	return out, nil
}

// Elements is the number of elements of a shape; 0 where it is too large.
func Elements(shape []int) int {
	n, _ := hooks.Elements(shape)
	return n
}

// WithoutOnes is a shape without its axes of size 1.
func WithoutOnes(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}
