package op

// Select takes one index of one axis away. Input: x.
type Select struct {
	Axis  int `json:"axis"`
	Index int `json:"index"`
}

// Kind is "select".
func (Select) Kind() string { return "select" }

// Eval copies, and with each element its bound.
func (o Select) Eval(c Call) (Value, error) {
	x := c.In[0]
	inner, n := sizeOf(x.Shape[o.Axis+1:]), x.Shape[o.Axis]
	return c.each(func(i int) Num { return x.at((i/inner*n+o.Index)*inner + i%inner) })
}

// Exact: elements are copied.
func (Select) Exact() {}
