package op

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// GELU is R(0.5·x·(1 + erf(x/√2))), in float32: the form with the error function. Input: x.
type GELU struct{}

// Kind is "gelu".
func (GELU) Kind() string { return "gelu" }

// Steps follows the formula. Below −2 the sum 1 + erf cancels, and the bound is u of 1, not of the result: so is the error of
// every engine that follows the formula.
func (GELU) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := b.Site("input", in[0])
	erf := b.Erf("erf", b.Mul("x/√2", x, b.Reciprocal("1/√2", math.Sqrt2)))
	return b.Mul("product", b.Mul("x/2", b.Literal(0.5), x), b.Add("1+erf", b.Literal(1), erf))
}

// Activations are the functions of a gate.
func Activations() []Op { return []Op{GELU{}, GELUTanh{}, SiLU{}} }
