package op

import "github.com/tracediff/tracediff/order/program"

// Argument is a tensor that the caller gives: token ids or positions, int64. No inputs.
type Argument struct{}

// Kind is "argument".
func (Argument) Kind() string { return "argument" }

// Steps is an error: an argument is given, not computed.
func (Argument) Steps(b *program.Builder, _, _ []program.Var) program.Var {
	return b.Fail("an argument of the model is not computed from anything")
}

// Given: it is what the caller passes.
func (Argument) Given() {}
