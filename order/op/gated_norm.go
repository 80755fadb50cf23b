package op

import "github.com/tracediff/tracediff/order/program"

// GatedNorm is R(w · R(RMSNorm(x · silu(gate)))), over the last axis, in float32: the norm after the scan of Mamba 2. With Single nothing is
// rounded before w. Inputs: x, gate. Weight: w.
type GatedNorm struct {
	Eps    float64 `json:"eps"`
	Single bool    `json:"single,omitempty"`
}

// Kind is "gated_norm".
func (GatedNorm) Kind() string { return "gated_norm" }

// Steps gates, and norms each row.
func (o GatedNorm) Steps(b *program.Builder, in, w []program.Var) program.Var {
	x := b.Mul("gated", in[0], b.Swish(b.Site("gate", in[1])))
	gain := After
	if o.Single {
		gain = Plain
	}
	return RMSNorm{Eps: o.Eps, Gain: gain}.Steps(b, []program.Var{x}, w)
}
