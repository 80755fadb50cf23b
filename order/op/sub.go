package op

// Sub is R(a − b). Inputs: a, b.
type Sub struct{}

// Kind is "sub".
func (Sub) Kind() string { return "sub" }

// Eval subtracts. Bound: E_a + E_b and the rounding of one step, by running error analysis as [Arith] has it.
func (Sub) Eval(c Call) (Value, error) {
	return c.each(func(i int) Num { return c.sub(c.In[0].at(i), c.In[1].at(i)) })
}

// OperandScale is the norm of the terms.
func (Sub) OperandScale() (fraction float64, words string) { return 1, ofTerms }
