package op

// Cast is R(x). Input: x.
type Cast struct{}

// Kind is "cast".
func (Cast) Kind() string { return "cast" }

// Eval copies, and with each element its bound: the one R is the caller's.
func (Cast) Eval(c Call) (Value, error) {
	return c.each(func(i int) Num { return c.In[0].at(i) })
}

// Exact: the one R is the last.
func (Cast) Exact() {}
