package op

// Rescale is R(R(y · target) / own): y brought to another magnitude. Inputs: y [B,T,H], target and own magnitude [B,T,1].
type Rescale struct{}

// Kind is "rescale".
func (Rescale) Kind() string { return "rescale" }

// Eval multiplies first, then divides. Bound: by running error analysis, two steps with an R between them.
func (Rescale) Eval(c Call) (Value, error) {
	n := c.In[0].last()
	return c.each(func(i int) Num { return c.rescale(c.In[0].at(i), c.In[1].at(i/n), c.In[2].at(i/n)) })
}

func (a Arith) rescale(y, target, own Num) Num { return a.div(a.R(a.mul(y, target)), own) }

// Shares is the quotient of the magnitudes.
func (Rescale) Shares() (s Shared, entry bool) { return SharedFactor, true }
