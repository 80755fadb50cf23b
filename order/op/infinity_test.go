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
	of := func(o op.Op, bound float64, x ...float64) (v, e float64) {
		t.Helper()
		c := program.Call{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, Shape: []int{1, 1}}
		for _, v := range x {
			c.In = append(c.In, program.Value{Shape: []int{1, 1}, Data: []float64{v}, Bound: []float64{bound}})
		}
		got, err := program.Eval(o, c)
		if err != nil {
			t.Fatal(err)
		}
		return got.Data[0], got.Bound[0]
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
	} {
		if v, e := of(c.o, c.bound, c.x...); v != c.want || !(e <= c.known) {
			t.Errorf("%s of %v is %v with the bound %v, want %v and %v", c.o.Kind(), c.x, v, e, c.want, c.known)
		}
	}
	if _, e := of(op.Add{}, 1e36, largest, 1e34); !math.IsInf(e, 1) {
		t.Errorf("of what may overflow the bound is %v", e)
	}
}
