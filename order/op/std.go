package op

import "github.com/tracediff/tracediff/order/program"

// Std is R(√((1/n) Σ (x − mean)²)) over the last axis, kept with size 1: the population's, around the unrounded
// mean. Input: x.
type Std struct{}

// Kind is "std".
func (Std) Kind() string { return "std" }

// Steps takes the deviation of each row. The mean is not rounded at all: torch updates it as it goes (Welford). The bounds
// are those of the two passes (Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983).
func (Std) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	sum := b.Unrounded(b.Sum("sum of mean", x))
	mean := b.Unrounded(b.Div("mean", sum, b.Literal(float64(x.Last()))))
	d := b.Unrounded(b.Sub("deviation", x, mean))
	return b.Sqrt("root", b.Mean("variance", b.Unrounded(b.Mul("square", d, d))))
}
