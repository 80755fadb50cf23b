package op

import "github.com/tracediff/tracediff/order/program"

// Score is how the weights of experts are made of a router's logits.
type Score string

// The scores of the families.
const (
	OfAll    Score = "softmax"           // of all experts
	OfChosen Score = "softmax of chosen" // of only the token's
	Sigmoid  Score = "sigmoid"           // of each separately
)

// Routing is R(Scale · s/(Σ s + Eps)) with s the scores of the experts that a token has; without Normalised, R(Scale · s). In float32.
// Inputs: logits [T,experts], the chosen experts [T,k].
type Routing struct {
	Score      Score   `json:"score"`
	Normalised bool    `json:"normalised,omitempty"`
	Eps        float64 `json:"eps,omitempty"`
	Scale      float64 `json:"scale,omitempty"` // 0 for none
}

// Kind is "routing".
func (Routing) Kind() string { return "routing" }

// Steps scores, takes what was chosen, and norms.
func (o Routing) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x, chosen := in[0], in[1]
	axis := len(x.Shape) - 1
	switch o.Score {
	case OfAll:
		x = b.Gather(axis, Softmax{}.Steps(b, []program.Var{x}, nil), chosen)
	case OfChosen:
		x = Softmax{}.Steps(b, []program.Var{b.Gather(axis, x, chosen)}, nil)
	case Sigmoid:
		x = b.Div("quotient", b.Literal(1), b.Add("sum", b.Literal(1), b.Exp("exp", b.Neg(x))))
		x = b.Gather(axis, x, chosen)
	default:
		return b.Fail("no score %q", o.Score)
	}
	if o.Normalised {
		sum := b.Sum("scores", x)
		if o.Eps != 0 {
			sum = b.Add("+eps", sum, b.Scalar("eps", o.Eps))
		}
		x = b.Div("share", x, sum)
	}
	if o.Scale != 0 {
		x = b.Mul("scaled", x, b.Scalar("scale", o.Scale))
	}
	return x
}
