package op

// Linear is R(Σ_k W[o,k]·x[k] + b[o]), accumulated in float32 and rounded once. Input: x. Weights: W [out, in] and, with
// Bias, b [out]. An output shape with more axes splits the last one, row-major.
type Linear struct {
	Bias bool `json:"bias,omitempty"`
}

// Kind is "linear".
func (Linear) Kind() string { return "linear" }

// Gain is what an RMSNorm does with its weight.
type Gain string

// The gains of the families.
const (
	Plain   Gain = "plain"   // x·inv·w, one R at the end
	NoScale Gain = "none"    // x·inv, one R at the end; no weight
	OnePlus Gain = "oneplus" // x·inv·(1+w), one R at the end
	After   Gain = "after"   // R(R(x·inv)·w): Llama and Qwen round before the weight
)

// RMSNorm is x · (mean(x²)+Eps)^(−1/2), then the gain, over the last axis, in float32. Input: x. Weight: w, unless
// Gain is NoScale.
type RMSNorm struct {
	Eps  float64 `json:"eps"`
	Gain Gain    `json:"gain"`
}

// Kind is "rms_norm".
func (RMSNorm) Kind() string { return "rms_norm" }
