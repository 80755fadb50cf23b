package op

import "github.com/tracediff/tracediff/order/program"

// Linear is R(Σ_k W[o,k]·x[k] + b[o]), accumulated in float32 and rounded once. Input: x. Weights: W [out, in] and, with
// Bias, b [out]. An output shape with more axes splits the last one, row-major.
type Linear struct {
	Bias bool `json:"bias,omitempty"`
}

// Kind is "linear".
func (Linear) Kind() string { return "linear" }

// Steps multiplies.
func (o Linear) Steps(b *program.Builder, in, w []program.Var) program.Var {
	if o.Bias {
		return b.Affine("product", in[0], w[0], w[1])
	}
	return b.Affine("product", in[0], w[0])
}
