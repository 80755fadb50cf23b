package op

// Scores is R(R(q·kᵀ) · Scale); query head h reads key head ⌊h·Hkv/Hq⌋. Inputs: q [B,Hq,T,D], keys [B,Hkv,S,D].
type Scores struct {
	Scale float64 `json:"scale"`
}

// Kind is "scores".
func (Scores) Kind() string { return "scores" }

// Eval multiplies; the scale is a Python number.
func (o Scores) Eval(c Call) (Value, error) {
	q, k := c.In[0], c.In[1]
	heads, tokens, keys, d := c.Shape[1], c.Shape[2], c.Shape[3], q.last()
	group := heads / k.Shape[1]
	scale := c.scalar(o.Scale)
	return c.each(func(i int) Num {
		h, t, s := i/keys/tokens, i/keys%tokens, i%keys
		query, key := q.slice((h*tokens+t)*d, d), k.slice((h/group*keys+s)*d, d)
		return c.mul(c.R(c.dot(query, key)), scale)
	})
}

// dot is Σ x·y.
func (a Arith) dot(x, y Value) Num {
	var s, squares, e float64
	for k, v := range x.Data {
		p := float64(v * y.Data[k])
		s += p
		if a.Bounds {
			squares += float64(p * p)
			xe, ye := x.at(k).E, y.at(k).E
			e += spread(v, xe, y.Data[k], ye)
		}
	}
	return a.total(s, squares, e, len(x.Data))
}
