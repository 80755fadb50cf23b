package op

import "github.com/tracediff/tracediff/order/program"

// Magnitude is R(√R(mean R(x²))) over the last axis, kept with size 1; with a Floor, R(√max(R(mean R(x²)), R(Floor))).
// Input: x.
type Magnitude struct {
	Floor float64 `json:"floor,omitempty"`
}

// Kind is "magnitude".
func (Magnitude) Kind() string { return "magnitude" }

// Steps takes the root mean square of each row.
func (o Magnitude) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	ms := b.R(b.Mean("mean", b.R(b.Mul("square", in[0], in[0]))))
	return b.Sqrt("root", b.Max(ms, b.Tensor("floor", o.Floor)))
}
