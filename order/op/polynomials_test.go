package op_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// quotient is a polynomial in x² times x, over another, all in float32: coefficients of the highest power first.
func quotient(x float32, above, below []float32) float32 {
	horner := func(c []float32) float32 {
		sum := c[0]
		for _, k := range c[1:] {
			sum = float32(float32(sum*float32(x*x)) + k)
		}
		return sum
	}
	return float32(horner(above)*x) / horner(below)
}

// sigmoid and tanh are those of Eigen and of MLAS, which ONNX Runtime has.
func sigmoid(x float32) float32 {
	above := []float32{4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05, 8.51377133304701e-03, 2.48287947061529e-01}
	below := []float32{6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06, 1.70198817374094e-03, 1.16817656904453e-01, 9.93151921023180e-01}
	return 0.5 + quotient(max(-18, min(18, x)), above, below)
}

func tanh(x float32) float32 {
	above := []float32{-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03}
	below := []float32{1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03}
	return quotient(max(-9, min(9, x)), above, below)
}

// What engines compute by quotients of polynomials in float32 is rounding. What is a few times further off is not.
func TestFunctionsOfPolynomialsAreRounding(t *testing.T) {
	const n = 40001
	in := make([]float64, n)
	for i := range in {
		in[i] = float64(float32(i-n/2) / (n / 40))
	}
	inside := func(o op.Op, of func(x float64) float64) (outside int) {
		v, err := program.Eval(o, program.Call{Arith: bounded, In: []program.Value{vector(in...)}, Shape: []int{1, 1, n}})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range in {
			if y := of(x); !(math.Abs(y-v.Data[i]) <= v.Bound[i]) {
				outside++
			}
		}
		return outside
	}
	silu := func(x float64) float64 { return float64(float32(x) * sigmoid(float32(x))) }
	if out := inside(op.SiLU{}, silu); out != 0 {
		t.Errorf("%d of %d elements of x·(1/2 + p/q) are outside of the bounds of SiLU", out, n)
	}
	if out := inside(op.Tanh{}, func(x float64) float64 { return float64(tanh(float32(x))) }); out != 0 {
		t.Errorf("%d of %d elements of p/q are outside of the bounds of tanh", out, n)
	}
	if out := inside(op.SiLU{}, func(x float64) float64 { return silu(x) + math.Abs(x)*0x1p-20 }); out < n/2 {
		t.Errorf("a sigmoid that is off by 1e-6 is outside of the bounds in %d of %d elements", out, n)
	}
	if out := inside(op.Tanh{}, func(x float64) float64 { return float64(tanh(float32(x))) * (1 + 0x1p-20) }); out < n/2 {
		t.Errorf("a tanh that is off by a millionth is outside of the bounds in %d of %d elements", out, n)
	}
}
