package op

// Identity hands its input on. Input: x.
type Identity struct{}

// Kind is "identity".
func (Identity) Kind() string { return "identity" }

// Eval copies, and with each element its bound.
func (Identity) Eval(c Call) (Value, error) {
	return c.each(func(i int) Num { return c.In[0].at(i) })
}

// Exact: elements are copied.
func (Identity) Exact() {}

// Keys are handed on.
func (Identity) Keys() Keys { return HandOnKeys }
