package op

// Context is R(probs·v), heads then merged: [B,Hq,T,S]·[B,Hkv,S,D] to [B,T,Hq·D]. Inputs: probs, values.
type Context struct{}

// Kind is "context".
func (Context) Kind() string { return "context" }

// Eval multiplies. A column of values is gathered once for all queries that read it. Bound: that of a sum of S
// products, see [Arith.total].
func (Context) Eval(c Call) (Value, error) {
	p, v, out := c.In[0], c.In[1], c.result()
	heads, tokens, keys := p.Shape[1], p.Shape[2], p.Shape[3]
	group, d := heads/v.Shape[1], v.last()
	column := Value{Data: make([]float64, keys)}
	if v.Bound != nil {
		column.Bound = make([]float64, keys)
	}
	for from := 0; from < heads; from += group {
		for j := range d {
			for s := range keys {
				column.set(s, v.at((from/group*keys+s)*d+j))
			}
			for h := from; h < from+group; h++ {
				for t := range tokens {
					out.set((t*heads+h)*d+j, c.dot(p.slice((h*tokens+t)*keys, keys), column))
				}
			}
		}
	}
	return out, nil
}
