package op

import "github.com/tracediff/tracediff/order/program"

// Mul is R(a ⊙ b). Inputs: a, b.
type Mul struct{}

// Kind is "mul".
func (Mul) Kind() string { return "mul" }

// Steps multiplies.
func (Mul) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Mul("product", in[0], in[1])
}
