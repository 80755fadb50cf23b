package op

import "github.com/tracediff/tracediff/order/program"

// Gating is R(x ⊙ y[n·Half : n·(Half+1)]): y has gate and up concatenated along the last axis, and x is the activation of the other half.
// Inputs: x [..., n], y [..., 2n].
type Gating struct {
	Half int `json:"half"` // 0 or 1
}

// Kind is "gating".
func (Gating) Kind() string { return "gating" }

// Steps multiplies.
func (o Gating) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x, y := in[0], in[1]
	n, axis := x.Last(), len(y.Shape)-1
	if y.Last() != 2*n || len(x.Shape) != axis+1 {
		return b.Fail("half of %v is not %v", y.Shape, x.Shape)
	}
	return b.Mul("product", x, b.Slice(y, axis, n*o.Half, n*(o.Half+1)))
}
