package op

// StreamMean is R((X_0 + u_1 + … + u_{A−1}) / A), the sum in float32. Inputs: X_0, u_1 … u_{A−1}.
type StreamMean struct{}

// Kind is "stream_mean".
func (StreamMean) Kind() string { return "stream_mean" }

// Eval averages. Bound: that of a sum of A terms, see [Arith.total], and of a division.
func (StreamMean) Eval(c Call) (Value, error) {
	return c.each(func(i int) Num { return c.mean(len(c.In), func(k int) Num { return c.In[k].at(i) }) })
}
