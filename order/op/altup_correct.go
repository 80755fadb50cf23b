package op

// AltUpCorrect is R(R(innovation · R(c[o] + 1)) + P_o) for each stream o.
// Inputs: innovation [B,T,H], coefficients c [B,T,A], predictions P [A,B,T,H].
type AltUpCorrect struct {
	Streams int `json:"streams"`
}

// Kind is "altup_correct".
func (AltUpCorrect) Kind() string { return "altup_correct" }

// Eval corrects each stream. Bound: by running error analysis, three steps with an R after each of the first two.
func (o AltUpCorrect) Eval(c Call) (Value, error) {
	innovation, coefs, predicted := c.In[0], c.In[1], c.In[2]
	size, n := len(innovation.Data), innovation.last()
	return c.each(func(i int) Num {
		to, j := i/size, i%size
		by := c.R(c.add(coefs.at(j/n*o.Streams+to), Num{V: 1}))
		return c.add(c.R(c.mul(innovation.at(j), by)), predicted.at(i))
	})
}

// OperandScale is the norm of the terms.
func (AltUpCorrect) OperandScale() (fraction float64, words string) { return 1, ofTerms }

// Shares is a token's coefficients.
func (AltUpCorrect) Shares() (s Shared, entry bool) { return SharedFactor, true }
