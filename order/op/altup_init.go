package op

// AltUpInit stacks x and its projections, each rescaled to the magnitude of x: [A,B,T,H].
// Inputs: x, target magnitude, then projection and own magnitude for each further stream.
type AltUpInit struct{}

// Kind is "altup_init".
func (AltUpInit) Kind() string { return "altup_init" }

// Eval rescales as [Rescale] does, and its bound is the same; that of the copy is its input's.
func (AltUpInit) Eval(c Call) (Value, error) {
	x, target := c.In[0], c.In[1]
	size, n := len(x.Data), x.last()
	return c.each(func(i int) Num {
		k, j := i/size, i%size
		if k == 0 {
			return x.at(j)
		}
		return c.rescale(c.In[2*k].at(j), target.at(j/n), c.In[2*k+1].at(j/n))
	})
}

// Shares is the quotient of the magnitudes.
func (AltUpInit) Shares() (s Shared, entry bool) { return SharedFactor, true }
