package op

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// GELUTanh is 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), every step float32, one R. Input: x.
//
// For x below about −2.5 the sum 1 + tanh cancels, so the float32 rounding of the tanh is seen even in bfloat16.
type GELUTanh struct{}

// Kind is "gelu_tanh".
func (GELUTanh) Kind() string { return "gelu_tanh" }

// Steps follows the formula. In the tail, where the sum 1 + tanh cancels, the bound is u of 1 and not of the result.
func (GELUTanh) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := b.Site("input", in[0])
	cube := b.Mul("cube", b.Mul("square", x, x), x)
	cubic := b.Mul("cubic", b.Scalar("0.044715", 0.044715), cube)
	inner := b.Mul("inner", b.Scalar("√(2/π)", math.Sqrt(2/math.Pi)), b.Add("sum", x, cubic))
	return b.Mul("product", b.Mul("x/2", b.Literal(0.5), x), b.Add("1+tanh", b.Literal(1), b.Tanh("tanh", inner)))
}

// OperandScale is a part of the input's norm: what is below zero is cut off.
func (GELUTanh) OperandScale() (fraction float64, words string) { return cutOff, ofCutInput }
