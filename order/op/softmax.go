package op

import "github.com/tracediff/tracediff/order/program"

// Softmax is exp(x−m) / Σ exp(x−m) with m the maximum, over the last axis, in float32 and not rounded. Input: x.
type Softmax struct{}

// Kind is "softmax".
func (Softmax) Kind() string { return "softmax" }

// Steps norms each row (for the algorithm and its errors: Blanchard, Higham and Higham, Accurately computing the
// log-sum-exp and softmax functions, 2021). Which element is the maximum does not matter: it cancels.
func (Softmax) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	exp := b.Exp("exp", b.Sub("difference", in[0], b.RowMax(in[0])))
	return b.Div("quotient", exp, b.Sum("sum", exp))
}
