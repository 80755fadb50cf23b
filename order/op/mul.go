package op

// Mul is R(a ⊙ b). Inputs: a, b.
type Mul struct{}

// Kind is "mul".
func (Mul) Kind() string { return "mul" }

// Eval multiplies. Bound: |a|·E_b + |b|·E_a + E_a·E_b and the rounding of one step.
func (Mul) Eval(c Call) (Value, error) {
	return c.each(func(i int) Num { return c.mul(c.In[0].at(i), c.In[1].at(i)) })
}
