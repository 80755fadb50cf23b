package op

// Scale is R(x · By). Input: x.
type Scale struct {
	By Const `json:"by"`
}

// Kind is "scale".
func (Scale) Kind() string { return "scale" }

// Eval multiplies. Bound: |By|·E and the rounding of one step; the constant is exact, as [Const] says what it is.
func (o Scale) Eval(c Call) (Value, error) {
	by := o.By.in(c.Arith)
	return c.each(func(i int) Num { return c.mul(c.In[0].at(i), by) })
}
