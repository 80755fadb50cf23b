package redflag

import (
	"context"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/internal/floats"
)

// read fills x with the elements of a tensor, starting at index from.
func (v *view) read(ctx context.Context, s *subject, from int64, x []float64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	size := s.DType.Size()
	if need := len(x) * size; cap(v.raw) < need {
		v.raw = make([]byte, need)
	}
	raw := v.raw[:len(x)*size]
	if _, err := v.t.ReadAt(s.Record, raw, from*int64(size)); err != nil {
		return err
	}
	return floats.Decode(x, s.DType, raw)
}

// row reads n elements, starting at index from, into new memory. Callers limit n to maxRow.
func (v *view) row(ctx context.Context, s *subject, from int64, n int) ([]float64, error) {
	x := make([]float64, n)
	return x, v.read(ctx, s, from, x)
}

// batch is the number of elements per read, if a row is not longer.
const batch = 1 << 14

// rows hands out the rows along the last axis, one after the other, until do returns false. Each row overwrites the row before. Rows longer than
// maxRow are not read.
func (v *view) rows(ctx context.Context, s *subject, do func(i int64, x []float64) (more bool, err error)) error {
	width := s.dim(1)
	if width == 0 || width > maxRow || s.elements() == 0 {
		return nil
	}
	count := s.elements() / int64(width)
	some := min(count, int64(max(1, batch/width)))
	x := make([]float64, int(some)*width)
	for at := int64(0); at < count; at += some {
		n := min(some, count-at)
		if err := v.read(ctx, s, at*int64(width), x[:int(n)*width]); err != nil {
			return err
		}
		for i := range int(n) {
			more, err := do(at+int64(i), x[i*width:(i+1)*width])
			if err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// pairs hands out the elements of two tensors of the same size, strip by strip.
func (v *view) pairs(ctx context.Context, a, b *subject, do func(x, y []float64)) error {
	n := a.elements()
	x, y := make([]float64, min(batch, n)), make([]float64, min(batch, n))
	for at := int64(0); at < n; at += batch {
		count := min(batch, n-at)
		if err := v.read(ctx, a, at, x[:count]); err != nil {
			return err
		}
		if err := v.read(ctx, b, at, y[:count]); err != nil {
			return err
		}
		do(x[:count], y[:count])
	}
	return nil
}

// coordinates are the indices of an element, as "[0,3,17]".
func coordinates(shape []int, at int64) string {
	if len(shape) == 0 {
		return "its only element"
	}
	index := make([]string, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		size := int64(max(shape[i], 1))
		index[i] = strconv.FormatInt(at%size, 10)
		at /= size
	}
	return "[" + strings.Join(index, ",") + "]"
}
