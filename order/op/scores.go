package op

// Scores is R(R(q·kᵀ) · Scale); query head h reads key head ⌊h·Hkv/Hq⌋. Inputs: q [B,Hq,T,D], keys [B,Hkv,S,D].
type Scores struct {
	Scale float64 `json:"scale"`
}

// Kind is "scores".
func (Scores) Kind() string { return "scores" }

// Eval multiplies; the scale is a Python number. Bound: that of a sum of D products, see [Arith.total], then of an R
// and one step.
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
	switch {
	case !a.Bounds && a.Sum == nil: // the usual case, several times as fast
		return a.total(partial{sum: dot(x.Data, y.Data)}, len(x.Data))
	case a.Sum != nil && x.Bound == nil && y.Bound == nil:
		return a.step(a.Sum.dot(x.Data, y.Data), 0)
	}
	return a.products(len(x.Data), func(k int) (Num, Num) { return x.at(k), y.at(k) })
}
