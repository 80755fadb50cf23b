package op

import "github.com/tracediff/tracediff/order/program"

// Rescale is R(R(y · target) / own): y brought to another magnitude. Inputs: y [B,T,H], target and own magnitude [B,T,1].
type Rescale struct{}

// Kind is "rescale".
func (Rescale) Kind() string { return "rescale" }

// Steps multiplies first, then divides.
func (Rescale) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Rescaled(in[0], in[1], in[2])
}
