package op

import "github.com/tracediff/tracediff/order/program"

// AltUpPredict is R(R(Σ_k X_k · c[A·o+k]) + X_o) for each stream o. Inputs: coefficients c [B,T,A·A], streams X [A,B,T,H].
type AltUpPredict struct {
	Streams int `json:"streams"`
}

// Kind is "altup_predict".
func (AltUpPredict) Kind() string { return "altup_predict" }

// Steps mixes the streams of each token.
func (o AltUpPredict) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	coefs, x := b.Split(in[0], 2, o.Streams), in[1] // [B,T,to,from]
	mixed := b.R(b.Dot("mixed", "kbth,btok->obth", x, coefs))
	return b.Add("sum", mixed, x)
}

// OperandScale is the norm of the terms.
func (AltUpPredict) OperandScale() (fraction float64, words string) { return 1, ofTerms }
