package op

import "github.com/tracediff/tracediff/order/program"

// Mean is R(mean x) over the last axis, kept with size 1. Input: x.
type Mean struct{}

// Kind is "mean".
func (Mean) Kind() string { return "mean" }

// Steps averages each row.
func (Mean) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Mean("mean", in[0])
}
