package op

import "github.com/tracediff/tracediff/order/program"

// Linear is R(Σ_k W[o,k]·x[k] + b[o]), accumulated in float32 and rounded once. Input: x. Weights: W [out, in] and, with
// Bias, b [out]. An output shape with more axes splits the last one, row-major; with Heads the result [B,T,h,D] is shown as [B,h,T,D].
// With Turned W is stored as [in, out], and the result are the outputs from From on.
type Linear struct {
	Bias   bool `json:"bias,omitempty"`
	Heads  bool `json:"heads,omitempty"`
	Turned bool `json:"turned,omitempty"`
	From   int  `json:"from,omitempty"`
}

// Kind is "linear".
func (Linear) Kind() string { return "linear" }

// Steps multiplies.
func (o Linear) Steps(b *program.Builder, in, w []program.Var) program.Var {
	var y program.Var
	x := in[0]
	if !o.Turned && x.Last() != w[0].Last() { // concatenated heads
		x = b.Reshape(x, -1, w[0].Last())
	}
	switch {
	case o.Turned:
		y = o.turned(b, x, w)
	case o.Bias:
		y = b.Affine("product", x, w[0], w[1])
	default:
		y = b.Affine("product", x, w[0])
	}
	if o.Heads {
		heads, tokens, d := b.Shape[1], b.Shape[2], b.Shape[3]
		y = b.Permute(b.Reshape(y, b.Shape[0], tokens, heads, d), 0, 2, 1, 3)
	}
	return y
}

// turned is x·W + b of a matrix that is stored as [in, out]: the bias is added to the finished sum.
func (o Linear) turned(b *program.Builder, x program.Var, w []program.Var) program.Var {
	n := 1
	for _, d := range b.Shape {
		n *= d
	}
	rows := 1
	for _, d := range x.Shape[:len(x.Shape)-1] {
		rows *= d
	}
	n /= max(rows, 1)
	y := b.Dot("product", "rk,ko->ro", b.Reshape(x, -1, x.Last()), b.Slice(b.Whole(w[0]), 1, o.From, o.From+n))
	if o.Bias {
		y = b.Add("bias", y, b.Slice(w[1], 0, o.From, o.From+n))
	}
	return y
}
