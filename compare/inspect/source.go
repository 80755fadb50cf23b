package inspect

import (
	"context"
	"math"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// source is a tensor that can be read several times, in strips.
type source struct {
	shape []int
	bits  int // in which an element's place among all numbers can be written: see keyBits
	// mask is the number at or below which a finite element is masked; −Inf where none is.
	mask float64
	// each hands out the elements in row-major order, at most lanes.Strip at a time. x may be overwritten.
	each func(do func(at int64, x []float64) error) error
}

// sourceOf is a tensor of a file. Reading it ends with the context.
func sourceOf(ctx context.Context, t *capture.Trace, r capture.Record) source {
	return source{shape: r.Shape, bits: keyBits(r.DType), mask: maskOf(r.DType), each: func(do func(int64, []float64) error) error {
		return t.Each(r, func(at int64, x []float64) error {
			if at%lanes.Block == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			return do(at, x)
		})
	}}
}

// bothMasked stands in a difference for what is masked on both sides: no two numbers of a trace differ by as much, but for
// the ends of float64.
const bothMasked = -math.MaxFloat64

// differenceOf is a − b of two tensors of one shape. Strips of b are read where those of a are.
func differenceOf(ctx context.Context, a, b *capture.Trace, ra, rb capture.Record) source {
	maskA, maskB := maskOf(ra.DType), maskOf(rb.DType)
	size := rb.DType.Size()
	return source{shape: ra.Shape, bits: 64, mask: bothMasked, each: func(do func(int64, []float64) error) error {
		var other [lanes.Strip]float64
		raw := make([]byte, lanes.Strip*size)
		return sourceOf(ctx, a, ra).each(func(at int64, x []float64) error {
			y := other[:len(x)]
			if _, err := b.ReadAt(rb, raw[:len(x)*size], at*int64(size)); err != nil {
				return err
			}
			if err := floats.Decode(y, rb.DType, raw); err != nil {
				return err
			}
			for i := range x {
				if masked(x[i], maskA) && masked(y[i], maskB) {
					x[i] = bothMasked
				} else {
					x[i] -= y[i]
				}
			}
			return do(at, x)
		})
	}}
}

// maskOf is a hundredth above the lowest finite number of a dtype that scores are computed in. The narrower floats use
// their whole range, and an integer is no score.
func maskOf(d hooks.DType) float64 {
	const near = 0.99
	switch d {
	case hooks.F64:
		return -near * math.MaxFloat64
	case hooks.F32, hooks.BF16: // their lowest numbers are a 256th apart
		return -near * math.MaxFloat32
	case hooks.F16:
		return -near * 65504
	}
	return math.Inf(-1)
}

// masked reports whether an element stands for −Inf in a mask; −Inf itself counts as infinite.
func masked(x, mask float64) bool { return x <= mask && x >= -math.MaxFloat64 }

// finite reports whether x is a number. Of such numbers statistics are made, unless they are masked.
func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
