package op

// AltUpPredict is R(R(Σ_k X_k · c[A·o+k]) + X_o) for each stream o. Inputs: coefficients c [B,T,A·A], streams X [A,B,T,H].
type AltUpPredict struct {
	Streams int `json:"streams"`
}

// Kind is "altup_predict".
func (AltUpPredict) Kind() string { return "altup_predict" }

// Eval mixes the streams of each token. Bound: that of a sum of A products, see [Arith.total], then of an R and one
// step.
func (o AltUpPredict) Eval(c Call) (Value, error) {
	coefs, x := c.In[0], c.In[1]
	size, n := len(x.Data)/o.Streams, x.last()
	return c.each(func(i int) Num {
		to, j := i/size, i%size
		row := j/n*o.Streams*o.Streams + to*o.Streams
		mixed := c.products(o.Streams, func(k int) (Num, Num) { return x.at(k*size + j), coefs.at(row + k) })
		return c.add(c.R(mixed), x.at(i))
	})
}

// OperandScale is the norm of the terms.
func (AltUpPredict) OperandScale() (fraction float64, words string) { return 1, ofTerms }

// Shares is a token's coefficients.
func (AltUpPredict) Shares() (s Shared, entry bool) { return SharedFactor, true }
