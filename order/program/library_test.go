package program

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The bound of a function holds at both ends of what its operand may be, to the rounding of float64: of the ends x ± e
// themselves, and of the two values whose difference the bound is.
func TestFunctionsAreBoundedAtBothEnds(t *testing.T) {
	for prim, f := range monotone {
		t.Run(prim.String(), rapid.MakeCheck(func(t *rapid.T) {
			x := rapid.OneOf(rapid.Float64Range(-30, 30), rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-30, 700, -700})).Draw(t, "x")
			e := math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "e"), -rapid.IntRange(-3, 40).Draw(t, "exponent"))
			v, bound := function(f, x, e)
			for _, at := range []float64{x - e, x - e/2, x + e/2, x + e} {
				w := f.of(at)
				rounding := math.Abs(f.of(at+0x1p-52*(math.Abs(x)+e))-w) + 0x1p-50*(math.Abs(v)+math.Abs(w))
				if math.Abs(w-v) > bound+rounding { // a NaN has no value
					t.Fatalf("of %v it is %v ± %v, of %v it is %v", x, v, bound, at, w)
				}
			}
		}))
	}
}
