package op

// ScaleChannels is R(x ⊙ w), w along the last axis. Input: x. Weight: w.
type ScaleChannels struct{}

// Kind is "scale_channels".
func (ScaleChannels) Kind() string { return "scale_channels" }

// Eval multiplies. Bound: |w|·E and the rounding of one step.
func (ScaleChannels) Eval(c Call) (Value, error) {
	w, err := c.vector(0)
	if err != nil {
		return Value{}, err
	}
	return c.each(func(i int) Num { return c.mul(c.In[0].at(i), Num{V: w[i%len(w)]}) })
}
