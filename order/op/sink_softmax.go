package op

import "github.com/tracediff/tracediff/order/program"

// SinkSoftmax is the softmax of a row and one score more, the sink of its head: z = R([s, sink] − max), e^(z − max z) / Σ, in float32. The
// last probability is the sink's. Input: scores [B,h,T,S]. Weight: the sinks [h].
type SinkSoftmax struct{}

// Kind is "sink_softmax".
func (SinkSoftmax) Kind() string { return "sink_softmax" }

// Steps joins, and takes the softmax.
func (SinkSoftmax) Steps(b *program.Builder, in, w []program.Var) program.Var {
	s := in[0].Shape
	sinks := b.Expand(b.Permute(w[0], -1, 0, -1, -1), []int{s[0], s[1], s[2], 1})
	x := b.Cat(3, in[0], sinks)
	return Softmax{}.Steps(b, []program.Var{b.R(b.Sub("below the largest", x, b.RowMax(x)))}, nil)
}
