package op

import "github.com/tracediff/tracediff/order/program"

// AddToOthers leaves stream 0 as it is and adds to the others: X_0, R(X_o + z) for o ≥ 1. Inputs: X [A,B,T,H], z [B,T,H].
type AddToOthers struct{}

// Kind is "add_to_others".
func (AddToOthers) Kind() string { return "add_to_others" }

// Steps copies the first stream and adds to the others.
func (AddToOthers) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	streams := b.Shape[0]
	return b.Cat(0, b.Slice(in[0], 0, 0, 1), b.Add("sum", b.Slice(in[0], 0, 1, streams), in[1]))
}

// OperandScale is the norm of the terms.
func (AddToOthers) OperandScale() (fraction float64, words string) { return 1, ofTerms }
