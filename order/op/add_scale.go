package op

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// AddScale is R(R(a + b) · By), or R(R(a + b) / By) with Divide. Inputs: a, b.
type AddScale struct {
	By     Const `json:"by"`
	Divide bool  `json:"divide,omitempty"`
}

// Kind is "add_scale".
func (AddScale) Kind() string { return "add_scale" }

// Steps adds, then scales.
func (o AddScale) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	sum := b.R(b.Add("sum", in[0], in[1]))
	if o.Divide {
		return b.Div("quotient", sum, o.By.in(b, "constant"))
	}
	return b.Mul("product", sum, o.By.in(b, "constant"))
}

// OperandScale is the norm of the terms, scaled as their sum.
func (o AddScale) OperandScale() (fraction float64, words string) {
	if o.Divide {
		return 1 / math.Abs(o.By.Value), ofTermsBy
	}
	return math.Abs(o.By.Value), ofTermsBy
}
