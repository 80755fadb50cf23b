package op

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// GELUSteps is GELUTanh with an R after every step, as a model has it that spells the formula out: GPT-2's "gelu_new". Its cube is
// R(R(x²)·x). Input: x.
type GELUSteps struct{}

// Kind is "gelu_steps".
func (GELUSteps) Kind() string { return "gelu_steps" }

// Steps follows the formula.
func (GELUSteps) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	cube := b.R(b.Mul("cube", b.R(b.Mul("square", x, x)), x))
	cubic := b.R(b.Mul("cubic", b.Scalar("0.044715", 0.044715), cube))
	inner := b.R(b.Mul("inner", b.Scalar("√(2/π)", math.Sqrt(2/math.Pi)), b.R(b.Add("sum", x, cubic))))
	half := b.R(b.Mul("x/2", b.Literal(0.5), x))
	return b.Mul("product", half, b.R(b.Add("1+tanh", b.Literal(1), b.R(b.Tanh("tanh", inner)))))
}

// OperandScale is a part of the input's norm: what is below zero is cut off.
func (GELUSteps) OperandScale() (fraction float64, words string) { return cutOff, ofCutInput }
