package op

import "github.com/tracediff/tracediff/order/program"

// AltUpCorrect is R(R(innovation · R(c[o] + 1)) + P_o) for each stream o.
// Inputs: innovation [B,T,H], coefficients c [B,T,A], predictions P [A,B,T,H].
type AltUpCorrect struct {
	Streams int `json:"streams"`
}

// Kind is "altup_correct".
func (AltUpCorrect) Kind() string { return "altup_correct" }

// Steps corrects each stream.
func (o AltUpCorrect) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	innovation, predicted := in[0], in[2]
	coefs := b.Permute(in[1], 2, 0, 1, -1) // [A,B,T,1]
	by := b.R(b.Add("coefficient", coefs, b.Literal(1)))
	return b.Add("sum", b.R(b.Mul("product", innovation, by)), predicted)
}

// OperandScale is the norm of the terms.
func (AltUpCorrect) OperandScale() (fraction float64, words string) { return 1, ofTerms }
