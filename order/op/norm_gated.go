package op

import "github.com/tracediff/tracediff/order/program"

// NormGated is R(R(R(x·inv)·w) · act(gate)), inv = (mean(x²)+Eps)^(−1/2), over the last axis, the activation in float32: the norm after a
// delta rule. With Single only the result is rounded. Inputs: x, gate. Weight: w.
type NormGated struct {
	Eps    float64    `json:"eps"`
	Act    Activation `json:"act"`
	Single bool       `json:"single,omitempty"`
}

// Kind is "norm_gated".
func (NormGated) Kind() string { return "norm_gated" }

// Steps norms each row, and gates.
func (o NormGated) Steps(b *program.Builder, in, w []program.Var) program.Var {
	gain := After
	if o.Single {
		gain = Plain
	}
	y := RMSNorm{Eps: o.Eps, Gain: gain}.Steps(b, in[:1], w)
	if !o.Single {
		y = b.R(y)
	}
	return b.Mul("gated", y, o.Act.steps(b, b.Reshape(in[1], b.Shape...)))
}
