package op

import "math"

// GELU is R(0.5·x·(1 + erf(x/√2))), in float32: the form with the error function. Input: x.
type GELU struct{}

// Kind is "gelu".
func (GELU) Kind() string { return "gelu" }

// Eval follows the formula step by step.
func (GELU) Eval(c Call) (Value, error) {
	half, one, k := Num{V: 0.5}, Num{V: 1}, c.scalar(math.Sqrt2/2)
	return c.each(func(i int) Num {
		x := c.In[0].at(i)
		return c.mul(c.mul(half, x), c.add(one, c.function(math.Erf, c.mul(x, k))))
	})
}
