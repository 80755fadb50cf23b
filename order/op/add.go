package op

// Add is R(a + b); b is repeated along axes of a that it has in size 1 or not at all, from the last axis on.
// Inputs: a, b.
type Add struct{}

// Kind is "add".
func (Add) Kind() string { return "add" }

// Eval adds. Bound: E_a + E_b and the rounding of one step, by running error analysis as [Arith] has it; of a term
// that the other absorbs, nothing.
func (Add) Eval(c Call) (Value, error) {
	a, b := c.In[0], c.In[1]
	return c.each(func(i int) Num { return c.add(a.at(i), b.at(i%len(b.Data))) })
}

// OperandScale is the norm of the terms.
func (Add) OperandScale() (fraction float64, words string) { return 1, ofTerms }
