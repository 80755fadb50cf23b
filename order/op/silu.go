package op

import "github.com/tracediff/tracediff/order/program"

// SiLU is R(x / (1 + exp(−x))), in float32. Input: x.
type SiLU struct{}

// Kind is "silu".
func (SiLU) Kind() string { return "silu" }

// Steps follows the formula.
func (SiLU) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Swish(b.Site("input", in[0]))
}
