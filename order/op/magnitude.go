package op

// Magnitude is R(√R(mean R(x²))) over the last axis, kept with size 1; with a Floor, R(√max(R(mean R(x²)), R(Floor))).
// Input: x.
type Magnitude struct {
	Floor float64 `json:"floor,omitempty"`
}

// Kind is "magnitude".
func (Magnitude) Kind() string { return "magnitude" }

// Eval takes the root mean square of each row. Bound: squares are one step and an R each, the mean that of a sum of n
// terms and a division, the root halves the relative error; see [Arith.total] and [Arith.sqrt]. The maximum with the
// floor adds none.
func (o Magnitude) Eval(c Call) (Value, error) {
	floor := c.castConst(o.Floor)
	return c.eachRow(c.In[0], c.In[0].last(), func(x Value) Num {
		ms := c.R(c.mean(len(x.Data), func(i int) Num { return c.R(c.mul(x.at(i), x.at(i))) }))
		return c.sqrt(larger(ms, floor))
	})
}

// Shares is its value.
func (Magnitude) Shares() (s Shared, entry bool) { return SharedValue, false }
