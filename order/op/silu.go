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

// Unsaturated holds for arguments from 0 to about a half: next to 1, a sum with 1 is rounded to 1 by every engine.
func (SiLU) Unsaturated(y float64) bool { return 0 < y && y < 0.3 }

// Shares is nothing.
func (SiLU) Shares() (s Shared, entry bool) { return SharedElement, false }

// Otherwise has the sigmoid rounded.
func (o SiLU) Otherwise() []Rounding {
	if o.Product {
		return nil
	}
	return []Rounding{{"rounds the sigmoid before it multiplies, transformers does not", SiLU{Product: true}}}
}
