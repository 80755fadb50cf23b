package op

// AddToOthers leaves stream 0 as it is and adds to the others: X_0, R(X_o + z) for o ≥ 1. Inputs: X [A,B,T,H], z [B,T,H].
type AddToOthers struct{}

// Kind is "add_to_others".
func (AddToOthers) Kind() string { return "add_to_others" }

// Eval adds. Bound: that of X_0 for its copy, of the others E_X + E_z and the rounding of one step.
func (AddToOthers) Eval(c Call) (Value, error) {
	x, z := c.In[0], c.In[1]
	size := len(z.Data)
	return c.each(func(i int) Num {
		if i < size {
			return x.at(i)
		}
		return c.add(x.at(i), z.at(i%size))
	})
}

// OperandScale is the norm of the terms.
func (AddToOthers) OperandScale() (fraction float64, words string) { return 1, ofTerms }
