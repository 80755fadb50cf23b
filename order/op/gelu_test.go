package op_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// fusedErf is the error function as the fused loops of engines have it: formula 7.1.26 of Abramowitz and Stegun, every
// step rounded to float32.
func fusedErf(x float32) float32 {
	size := float32(math.Abs(float64(x)))
	t := 1 / (1 + float32(0.3275911*size))
	p := float32(1.061405429)
	for _, a := range []float32{-1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		p = float32(p*t) + a
	}
	y := 1 - float32(float32(p*t)*float32(math.Exp(-float64(size*size))))
	return float32(math.Copysign(float64(y), float64(x)))
}

// A GELU with that error function is no mistake: its elements lie within the bounds, and so does one with the exact
// function. Another activation does not.
func TestGELUBoundAllowsFusedErf(t *testing.T) {
	a := f32
	a.Bounds = true
	wrong := 0
	for i := -6000; i <= 6000; i++ {
		x := float32(i) / 1000
		v, err := program.Eval(op.GELU{}, program.Call{Arith: a, In: []program.Value{vector(float64(x))}, Shape: []int{1, 1, 1}})
		if err != nil {
			t.Fatal(err)
		}
		exact := 0.5 * float64(x) * (1 + math.Erf(float64(x)*math.Sqrt2/2))
		fused := float64(float32(0.5*x) * (1 + fusedErf(float32(x*float32(math.Sqrt2/2)))))
		for _, y := range []float64{exact, fused} {
			if !(math.Abs(y-v.Data[0]) <= v.Bound[0]) {
				t.Errorf("%g for %g: %g away, the bound is %g", y, x, math.Abs(y-v.Data[0]), v.Bound[0])
			}
		}
		tanh := 0.5 * float64(x) * (1 + math.Tanh(math.Sqrt(2/math.Pi)*float64(x+0.044715*x*x*x)))
		if !(math.Abs(tanh-v.Data[0]) <= v.Bound[0]) {
			wrong++
		}
	}
	if wrong < 9000 {
		t.Errorf("the tanh form is outside at %d of 12001 x only", wrong)
	}
}
