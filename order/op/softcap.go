package op

import "math"

// Softcap is R(R(tanh R(x / Cap)) · Cap). Input: x.
type Softcap struct {
	Cap float64 `json:"cap"`
}

// Kind is "softcap".
func (Softcap) Kind() string { return "softcap" }

// Eval follows the three operations. Bound: by running error analysis, an R after each of the first two.
func (o Softcap) Eval(c Call) (Value, error) {
	limit := c.scalar(o.Cap)
	return c.each(func(i int) Num {
		u := c.R(c.div(c.In[0].at(i), limit))
		return c.mul(c.R(c.function(math.Tanh, u)), limit)
	})
}

// Unsaturated holds up to half of the cap.
func (o Softcap) Unsaturated(y float64) bool { return math.Abs(y) < o.Cap/2 }

// Shares is nothing.
func (Softcap) Shares() (s Shared, entry bool) { return SharedElement, false }
