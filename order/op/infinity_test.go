package op_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// A sum that float32 does not have is an infinity in every engine, and what follows from one is known: two masks added to each other hide a
// score, and the sigmoid of a score of −∞ is 0. What may or may not overflow has no bound.
func TestInfinities(t *testing.T) {
	largest, inf := float64(math.MaxFloat32), math.Inf(1)
	in := func(d hooks.DType, o op.Op, bound float64, x ...float64) (v, e float64) {
		t.Helper()
		c := program.Call{Arith: program.Arith{DType: d, Emulated: true, Bounds: true}, Shape: []int{1, 1}}
		for _, v := range x {
			c.In = append(c.In, program.Value{Shape: []int{1, 1}, Data: []float64{v}, Bound: []float64{bound}})
		}
		got, err := program.Eval(o, c)
		if err != nil {
			t.Fatal(err)
		}
		return got.Data[0], got.Bound[0]
	}
	of := func(o op.Op, bound float64, x ...float64) (v, e float64) {
		t.Helper()
		return in(hooks.F32, o, bound, x...)
	}
	for _, c := range []struct {
		o           op.Op
		x           []float64
		bound       float64
		want, known float64
	}{
		{op.Add{}, []float64{-largest, -largest}, 0, -inf, 0},
		{op.Add{}, []float64{-largest, -largest}, 1e30, -inf, 0},
		{op.Add{}, []float64{-inf, 5}, 0.1, -inf, 0},
		{op.Sub{}, []float64{-inf, -largest}, 1, -inf, 0},
		{op.Gated{Act: op.OfSigmoid}, []float64{-inf, 1}, 0, 0, 1e-6},
		{op.Gated{Act: op.OfSigmoid}, []float64{inf, 1}, 0, 1, 1e-6},
		{op.Gated{Act: op.OfSigmoid}, []float64{-1000, 1}, 0.1, 0, 1e-6}, // beyond the exponential of float64
	} {
		if v, e := of(c.o, c.bound, c.x...); v != c.want || !(e <= c.known) {
			t.Errorf("%s of %v is %v with the bound %v, want %v and %v", c.o.Kind(), c.x, v, e, c.want, c.known)
		}
	}
	if _, e := of(op.Add{}, 1e36, largest, 1e34); !math.IsInf(e, 1) {
		t.Errorf("of what may overflow the bound is %v", e)
	}
}

// What lies beyond the numbers of a dtype with its whole bound rounds to an infinity in every engine; what may be on either side of their end
// has no bound.
func TestInfinitiesOfRounding(t *testing.T) {
	for _, c := range []struct {
		d           hooks.DType
		x, bound    float64
		want, known float64
	}{
		{hooks.F16, -65504 - 100, 0.1, math.Inf(-1), 0},
		{hooks.F16, 65504 + 15, 0.5, 65504, 0},
		{hooks.F16, 65504 + 15, 2, 65504, math.Inf(1)},
		{hooks.F16, 65504 + 17, 2, math.Inf(1), math.Inf(1)},
		{hooks.BF16, 0x1.ffp127, 0x1p100, math.Inf(1), math.Inf(1)},
		{hooks.BF16, 0x1.ff8p127, 0x1p100, math.Inf(1), 0},
	} {
		v := program.Value{Data: []float64{c.x}, Bound: []float64{c.bound}}
		program.Arith{DType: c.d, Emulated: true, Bounds: true}.Round(v, c.d)
		if v.Data[0] != c.want || v.Bound[0] != c.known {
			t.Errorf("%s of %v ± %v is %v with the bound %v, want %v and %v", c.d, c.x, c.bound, v.Data[0], v.Bound[0], c.want, c.known)
		}
	}
}
