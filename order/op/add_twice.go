package op

import "github.com/tracediff/tracediff/order/program"

// AddTwice is R(R(a + b) + c): a residual with attention and MLP side by side, or three embeddings. Inputs: a, b, c.
type AddTwice struct{}

// Kind is "add_twice".
func (AddTwice) Kind() string { return "add_twice" }

// Steps adds.
func (AddTwice) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Add("second", b.R(b.Add("first", in[0], in[1])), in[2])
}

// OperandScale is the norm of the terms.
func (AddTwice) OperandScale() (fraction float64, words string) { return 1, ofTerms }
