package op

import "github.com/tracediff/tracediff/order/program"

// Sub is R(a − b). Inputs: a, b.
type Sub struct{}

// Kind is "sub".
func (Sub) Kind() string { return "sub" }

// Steps subtracts.
func (Sub) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Sub("difference", in[0], in[1])
}

// OperandScale is the norm of the terms.
func (Sub) OperandScale() (fraction float64, words string) { return 1, ofTerms }
