package op

import "github.com/tracediff/tracediff/order/program"

// ReLUSquared is R(max(x, 0)²). Input: x.
type ReLUSquared struct{}

// Kind is "relu_squared".
func (ReLUSquared) Kind() string { return "relu_squared" }

// Steps squares what is above zero.
func (ReLUSquared) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := b.Max(in[0], b.Literal(0))
	return b.Mul("square", x, x)
}

// OperandScale is a part of the input's norm: what is below zero is cut off.
func (ReLUSquared) OperandScale() (fraction float64, words string) { return cutOff, ofCutInput }
