package quant

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestErrorsAreTheSameFourAtATime: with and without vector instructions, to the bit, also of what is not finite.
func TestErrorsAreTheSameFourAtATime(t *testing.T) {
	if !vectors {
		t.Skip("this processor has no AVX2")
	}
	t.Cleanup(func() { vectors = true })
	numbers := rapid.OneOf(rapid.Float64Range(-4, 4), rapid.Float64Range(-2000, 2000), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e300, 5e-324}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "elements")
		c := &Codes{Lo: -32, Hi: 31}
		c.resize(n, n)
		c.Step[0], c.Offset[0] = numbers.Draw(t, "step"), rapid.SampledFrom([]float64{none, 0.5, -3}).Draw(t, "offset")
		if rapid.Bool().Draw(t, "early") {
			c.Early = toF16
		} else {
			c.Early = Rounding{}
		}
		x := make([]float64, n)
		for i := range x {
			c.Code[i] = int16(rapid.IntRange(-32, 31).Draw(t, "code"))
			x[i] = c.Step[0]*float64(c.Code[i]) + c.Offset[0] + c.Step[0]*rapid.Float64Range(-0.6, 0.6).Draw(t, "off")
			if rapid.IntRange(0, 40).Draw(t, "other") == 0 {
				x[i] = numbers.Draw(t, "number")
			}
		}
		vectors = true
		four := c.Errors(0, x)
		vectors = false
		one := c.Errors(0, x)
		same := func(a, b float64) bool {
			return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b || a == 0 && b == 0
		}
		if !same(one.Error2, four.Error2) || !same(one.X2, four.X2) || !same(one.Beyond2, four.Beyond2) || one.Nearest != four.Nearest || one.Nearest && (!same(one.Least, four.Least) || !same(one.Most, four.Most)) {
			t.Fatalf("one at a time %+v, four %+v", one, four)
		}
	})
}
