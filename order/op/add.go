package op

import "github.com/tracediff/tracediff/order/program"

// Add is R(a + b); b is repeated along axes of a that it has in size 1 or not at all, from the last axis on.
// Inputs: a, b.
type Add struct{}

// Kind is "add".
func (Add) Kind() string { return "add" }

// Steps adds.
func (Add) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Add("sum", in[0], in[1])
}

// OperandScale is the norm of the terms.
func (Add) OperandScale() (fraction float64, words string) { return 1, ofTerms }
