package op

import "github.com/tracediff/tracediff/order/program"

// LayerNorm is R((x − mean(x)) · (variance(x)+Eps)^(−1/2) · w + b), over the last axis, in float32. Mean and variance are updated as
// torch goes along a row (Welford), and it computes x·r − mean·r. Input: x. Weights: w and, with Bias, b.
type LayerNorm struct {
	Eps  float64 `json:"eps"`
	Bias bool    `json:"bias,omitempty"`
}

// Kind is "layer_norm".
func (LayerNorm) Kind() string { return "layer_norm" }

// Steps norms each row.
func (o LayerNorm) Steps(b *program.Builder, in, w []program.Var) program.Var {
	x := in[0]
	mean := b.Unrounded(b.Div("mean", b.Unrounded(b.Sum("sum of mean", x)), b.Literal(float64(x.Last()))))
	d := b.Unrounded(b.Sub("deviation", x, mean))
	variance := b.Mean("variance", b.Unrounded(b.Mul("square", d, d)))
	inv := b.Rsqrt("rsqrt", b.Add("+eps", variance, b.Scalar("eps", o.Eps)))
	y := b.Sub("centered", b.Mul("product", x, inv), b.Mul("shift", mean, inv))
	y = b.Mul("weight", y, w[0])
	if o.Bias {
		y = b.Add("bias", y, w[1])
	}
	return y
}
