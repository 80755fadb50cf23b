package op

import "github.com/tracediff/tracediff/order/program"

// ScaleChannels is R(x ⊙ w), w along the last axis. Input: x. Weight: w.
type ScaleChannels struct{}

// Kind is "scale_channels".
func (ScaleChannels) Kind() string { return "scale_channels" }

// Steps multiplies.
func (ScaleChannels) Steps(b *program.Builder, in, w []program.Var) program.Var {
	return b.Mul("product", in[0], w[0])
}
