package op

import "math"

// SiLU is R(x / (1 + exp(−x))), in float32. Input: x.
type SiLU struct{}

// Kind is "silu".
func (SiLU) Kind() string { return "silu" }

// Eval follows the formula step by step.
func (SiLU) Eval(c Call) (Value, error) {
	return c.each(func(i int) Num {
		x := c.In[0].at(i)
		return c.div(x, c.add(Num{V: 1}, c.function(math.Exp, Num{V: -x.V, E: x.E})))
	})
}
