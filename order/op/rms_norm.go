package op

import "github.com/tracediff/tracediff/order/program"

// Gain is what an RMSNorm does with its weight.
type Gain string

// The gains of the families.
const (
	Plain   Gain = "plain"   // x·inv·w, one R at the end
	NoScale Gain = "none"    // x·inv, one R at the end; no weight
	OnePlus Gain = "oneplus" // x·inv·(1+w), one R at the end
	After   Gain = "after"   // R(R(x·inv)·w): Llama and Qwen round before the weight
)

// RMSNorm is x · inv, inv = (mean(x²)+Eps)^(−1/2), then the gain, over the last axis of the result, in float32. Input: x.
// Weight: w, unless Gain is NoScale. With Heads the input is [B,T,h·D] and the result [B,h,T,D].
type RMSNorm struct {
	Eps   float64 `json:"eps"`
	Gain  Gain    `json:"gain"`
	Heads bool    `json:"heads,omitempty"`
}

// Kind is "rms_norm".
func (RMSNorm) Kind() string { return "rms_norm" }

// Steps norms each row. Squares are positive, so a sum of n of them is off by no more than 2λ·√n·u of itself; the root
// halves that; each product adds u.
func (o RMSNorm) Steps(b *program.Builder, in, w []program.Var) program.Var {
	x := in[0]
	if o.Heads {
		x = b.Permute(b.Reshape(x, b.Shape[0], b.Shape[2], b.Shape[1], b.Shape[3]), 0, 2, 1, 3)
	} else {
		x = b.Reshape(x, b.Shape...)
	}
	var gain program.Var
	switch o.Gain {
	case Plain, After:
		gain = w[0]
	case OnePlus:
		gain = b.Add("1+w", b.Literal(1), w[0])
	}
	ms := b.Mean("mean", b.Mul("square", x, x))
	inv := b.Rsqrt("rsqrt", b.Add("+eps", ms, b.Scalar("eps", o.Eps)))
	y := b.Mul("product", x, inv)
	switch o.Gain {
	case NoScale:
		return y
	case After:
		y = b.R(y)
	}
	return b.Mul("weight", y, gain)
}
