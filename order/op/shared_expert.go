package op

import "github.com/tracediff/tracediff/order/program"

// SharedExpert is R(R(R(sigmoid(gate))·y) + x): what the experts of a token give, and that of the expert that all tokens have, by its gate.
// Inputs: gate [T,1], y, x.
type SharedExpert struct{}

// Kind is "shared_expert".
func (SharedExpert) Kind() string { return "shared_expert" }

// Steps gates, and adds.
func (SharedExpert) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Add("sum", in[2], b.R(b.Mul("product", b.R(sigmoid(b, in[0])), in[1])))
}

// OperandScale is the norm of the terms.
func (SharedExpert) OperandScale() (fraction float64, words string) { return 1, ofTerms }
