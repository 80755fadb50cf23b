package op

// Magnitude is R(√R(mean R(x²))) over the last axis, kept with size 1; with a Floor, R(√max(R(mean R(x²)), R(Floor))).
// Input: x.
type Magnitude struct {
	Floor float64 `json:"floor,omitempty"`
}

// Kind is "magnitude".
func (Magnitude) Kind() string { return "magnitude" }

// Rescale is R(R(y · target) / own): y brought to another magnitude. Inputs: y, target magnitude, own magnitude.
type Rescale struct{}

// Kind is "rescale".
func (Rescale) Kind() string { return "rescale" }

// AltUpInit stacks x and its projections, each rescaled to the magnitude of x: [A,B,T,H].
// Inputs: x, target magnitude, then projection and own magnitude for each further stream.
type AltUpInit struct{}

// Kind is "altup_init".
func (AltUpInit) Kind() string { return "altup_init" }

// AltUpPredict is R(R(Σ_k X_k · c[A·o+k]) + X_o) for each stream o. Inputs: coefficients [B,T,A·A], streams X [A,B,T,H].
type AltUpPredict struct {
	Streams int `json:"streams"`
}

// Kind is "altup_predict".
func (AltUpPredict) Kind() string { return "altup_predict" }

// AltUpCorrect is R(R(innovation · R(c[o] + 1)) + P_o) for each stream o.
// Inputs: innovation [B,T,H], coefficients c [B,T,A], predictions P [A,B,T,H].
type AltUpCorrect struct {
	Streams int `json:"streams"`
}

// Kind is "altup_correct".
func (AltUpCorrect) Kind() string { return "altup_correct" }

// AddToOthers leaves stream 0 as it is and adds to the others: X_0, R(X_o + z) for o ≥ 1. Inputs: X [A,B,T,H], z [B,T,H].
type AddToOthers struct{}

// Kind is "add_to_others".
func (AddToOthers) Kind() string { return "add_to_others" }

// StreamMean is R((X_0 + u_1 + … + u_{A−1}) / A), the sum in float32. Inputs: X_0, u_1 … u_{A−1}.
type StreamMean struct{}

// Kind is "stream_mean".
func (StreamMean) Kind() string { return "stream_mean" }
