package op

import "github.com/tracediff/tracediff/order/program"

// SiLU is R(x / (1 + exp(−x))), in float32. Input: x.
type SiLU struct{}

// Kind is "silu".
func (SiLU) Kind() string { return "silu" }

// Steps follows the formula.
func (SiLU) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := b.Site("input", in[0])
	return b.Div("quotient", x, b.Add("1+exp", b.Literal(1), b.Exp("exp", b.Neg(x))))
}
