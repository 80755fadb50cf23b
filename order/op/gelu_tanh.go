package op

import "math"

// GELUTanh is 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), every step float32, one R. Input: x.
//
// For x below about −2.5 the sum 1 + tanh cancels, so the float32 rounding of the tanh is seen even in bfloat16.
type GELUTanh struct{}

// Kind is "gelu_tanh".
func (GELUTanh) Kind() string { return "gelu_tanh" }

// Eval follows the formula step by step. Bound: by running error analysis; tanh passes on its change over its
// argument's interval and adds the library's error, see [Arith.function]. In the tail, where the sum cancels, the
// bound is u of 1 and not of the result.
func (GELUTanh) Eval(c Call) (Value, error) {
	half, one := Num{V: 0.5}, Num{V: 1}
	k, cubic := c.scalar(math.Sqrt(2/math.Pi)), c.scalar(0.044715)
	return c.each(func(i int) Num {
		x := c.In[0].at(i)
		cube := c.mul(c.mul(x, x), x)
		inner := c.mul(k, c.add(x, c.mul(cubic, cube)))
		return c.mul(c.mul(half, x), c.add(one, c.function(math.Tanh, inner)))
	})
}

// Unsaturated holds for arguments from 0 to about a half: next to 1, a sum with 1 is rounded to 1 by every engine.
func (GELUTanh) Unsaturated(y float64) bool { return 0 < y && y < 0.3 }

// Shares is nothing.
func (GELUTanh) Shares() (s Shared, entry bool) { return SharedElement, false }

// OperandScale is a part of the input's norm: what is below zero is cut off.
func (GELUTanh) OperandScale() (fraction float64, words string) { return cutOff, ofCutInput }

// Mistakes is the other GELU.
func (GELUTanh) Mistakes() []Rounding {
	return []Rounding{{"has the GELU of the error function, not that of tanh", GELU{}}}
}
