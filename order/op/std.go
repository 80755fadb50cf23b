package op

// Std is R(√((1/n) Σ (x − mean)²)) over the last axis, kept with size 1: the population's, around the unrounded
// mean. Input: x.
type Std struct{}

// Kind is "std".
func (Std) Kind() string { return "std" }

// Eval takes the deviation of each row. The mean is not rounded at all: torch updates it as it goes (Welford). Bound:
// by running error analysis of the two passes (Chan, Golub and LeVeque, Algorithms for computing the sample variance,
// 1983): each deviation is off by what bounds the mean, each square by twice its product with the deviation, and the
// root of a sum that is all error, as of a constant row, by the root of that error.
func (Std) Eval(c Call) (Value, error) {
	return c.eachRow(c.In[0], c.In[0].last(), func(x Value) Num {
		n := len(x.Data)
		mean := c.unrounded().mean(n, x.at)
		return c.sqrt(c.mean(n, func(i int) Num {
			d := c.unrounded().sub(x.at(i), mean)
			return c.unrounded().mul(d, d)
		}))
	})
}

// unrounded is a without the rounding of steps to float32; bounds stay.
func (a Arith) unrounded() Arith {
	a.Emulated = false
	return a
}

// Shares is its value.
func (Std) Shares() (s Shared, entry bool) { return SharedValue, false }
