package op

// Context is R(probs·v), heads then merged: [B,Hq,T,S]·[B,Hkv,S,D] to [B,T,Hq·D]. Inputs: probs, values.
type Context struct{}

// Kind is "context".
func (Context) Kind() string { return "context" }

// Eval multiplies.
func (Context) Eval(c Call) (Value, error) {
	p, v := c.In[0], c.In[1]
	heads, tokens, keys := p.Shape[1], p.Shape[2], p.Shape[3]
	group, d := heads/v.Shape[1], v.last()
	return c.each(func(i int) Num {
		t, h, j := i/d/heads, i/d%heads, i%d
		probs, first := p.slice((h*tokens+t)*keys, keys), h/group*keys*d+j
		column := Value{Data: make([]float64, keys)}
		if v.Bound != nil {
			column.Bound = make([]float64, keys)
		}
		for s := range keys {
			column.set(s, v.at(first+s*d))
		}
		return c.dot(probs, column)
	})
}
