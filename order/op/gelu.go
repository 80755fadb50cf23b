package op

import "math"

// GELU is R(0.5·x·(1 + erf(x/√2))), in float32: the form with the error function. Input: x.
//
// Its bound allows the error function an error of 12 units whatever its size, not units of its result: the loops that
// engines fuse compute it as 1 − t·p(t)·exp(−x²), t = 1/(1 + 0.3275911·|x|), with the polynomial p of Abramowitz and
// Stegun 7.1.26. That is off by 1.5·10⁻⁷, two and a half units, and the roundings of the polynomial at x near 0, where
// what is subtracted is near 1, make it more: torch's GELU was 9.2 units off at most, over four million x between −8 and 8.
type GELU struct{}

// unitsOfFusedErf is what the error function within a GELU may be off by.
const unitsOfFusedErf = 12

// Kind is "gelu".
func (GELU) Kind() string { return "gelu" }

// Eval follows the formula step by step. Bound: by running error analysis; erf passes on its change over its
// argument's interval and adds the library's error, see [Arith.function]. Below −2 the sum 1 + erf cancels, and the
// bound is u of 1, not of the result: so is the error of every engine that follows the formula.
func (GELU) Eval(c Call) (Value, error) {
	half, one, k := Num{V: 0.5}, Num{V: 1}, c.scalar(math.Sqrt2/2)
	return c.each(func(i int) Num {
		x := c.In[0].at(i)
		erf := c.function(math.Erf, c.mul(x, k))
		if c.Bounds {
			erf.E += unitsOfFusedErf * unit32
		}
		return c.mul(c.mul(half, x), c.add(one, erf))
	})
}

// Unsaturated holds for arguments from 0 to about a half: next to 1, a sum with 1 is rounded to 1 by every engine.
func (GELU) Unsaturated(y float64) bool { return 0 < y && y < 0.3 }

// Shares is nothing.
func (GELU) Shares() (s Shared, entry bool) { return SharedElement, false }

// Mistakes is the other GELU.
func (GELU) Mistakes() []Rounding {
	return []Rounding{{"has the GELU of tanh, not that of the error function", GELUTanh{}}}
}
