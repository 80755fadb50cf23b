package op

import "github.com/tracediff/tracediff/order/program"

// Choice are the indexes of the K largest scores of a row: the experts that a router gives a token. Input: logits [T,experts]. Weight, with
// Bias: one number for each expert that is added to its score before the choice.
type Choice struct {
	K     int   `json:"k"`
	Score Score `json:"score,omitempty"` // "softmax" or "sigmoid" of the logits; empty for the logits themselves
	Bias  bool  `json:"bias,omitempty"`
}

// Kind is "choice".
func (Choice) Kind() string { return "choice" }

// Steps scores, and chooses.
func (o Choice) Steps(b *program.Builder, in, w []program.Var) program.Var {
	x := in[0]
	switch o.Score {
	case "":
	case OfAll:
		x = Softmax{}.Steps(b, []program.Var{x}, nil)
	case Sigmoid:
		x = sigmoid(b, x)
	default:
		return b.Fail("no score %q", o.Score)
	}
	if o.Bias {
		x = b.Add("biased", x, w[0])
	}
	return b.Rank(x, o.K, false)
}

// Exact: an index is not rounded.
func (Choice) Exact() {}
