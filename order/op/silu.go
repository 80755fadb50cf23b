package op

import "math"

// SiLU is R(x / (1 + exp(−x))), in float32. Input: x. With Product it is R(x · R(1 / (1 + exp(−x)))), an engine's that has
// a sigmoid and no SiLU.
type SiLU struct {
	Product bool `json:"product,omitempty"`
}

// Kind is "silu".
func (SiLU) Kind() string { return "silu" }

// Eval follows the formula step by step. Bound: by running error analysis, the exponential passing on its change over
// the interval of x.
func (o SiLU) Eval(c Call) (Value, error) {
	return c.each(func(i int) Num {
		x := c.In[0].at(i)
		below := c.add(Num{V: 1}, c.function(math.Exp, Num{V: -x.V, E: x.E}))
		if o.Product || c.Inner == Free { // who rounds elsewhere may have either formula, and this one has a step more
			return c.mul(x, c.R(c.div(Num{V: 1}, below)))
		}
		return c.div(x, below)
	})
}
