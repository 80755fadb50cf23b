package op

// Mean is R(mean x) over the last axis, kept with size 1. Input: x.
type Mean struct{}

// Kind is "mean".
func (Mean) Kind() string { return "mean" }

// Eval averages each row. Bound: that of a sum of n terms, see [Arith.total], and of a division.
func (Mean) Eval(c Call) (Value, error) {
	return c.eachRow(c.In[0], c.In[0].last(), func(x Value) Num { return c.mean(len(x.Data), x.at) })
}

// Shares is its value.
func (Mean) Shares() (s Shared, entry bool) { return SharedValue, false }
