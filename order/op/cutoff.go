package op

import "github.com/tracediff/tracediff/order/program"

// Cutoff is R(mean + R(std · Multiplier)). Inputs: mean, std.
type Cutoff struct {
	Multiplier Const `json:"multiplier"`
}

// Kind is "cutoff".
func (Cutoff) Kind() string { return "cutoff" }

// Steps follows the formula.
func (o Cutoff) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	by := b.Computed("multiplier", o.Multiplier.Value, o.Multiplier.Cast) // a quantile
	return b.Add("sum", in[0], b.R(b.Mul("product", in[1], by)))
}
