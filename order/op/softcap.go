package op

import "github.com/tracediff/tracediff/order/program"

// Softcap is R(R(tanh R(x / Cap)) · Cap). Input: x.
type Softcap struct {
	Cap float64 `json:"cap"`
}

// Kind is "softcap".
func (Softcap) Kind() string { return "softcap" }

// Steps follows the three operations.
func (o Softcap) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	limit := b.Scalar("cap", o.Cap)
	return b.Mul("product", b.R(b.Tanh("tanh", b.R(b.Div("quotient", in[0], limit)))), limit)
}
