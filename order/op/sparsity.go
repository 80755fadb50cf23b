package op

// Mean is R(mean x) over the last axis, kept with size 1. Input: x.
type Mean struct{}

// Kind is "mean".
func (Mean) Kind() string { return "mean" }

// Std is R(√((1/n) Σ (x − mean)²)) over the last axis, kept with size 1: the population's, around the unrounded
// mean. Input: x.
type Std struct{}

// Kind is "std".
func (Std) Kind() string { return "std" }

// Cutoff is R(mean + R(std · Multiplier)). Inputs: mean, std.
type Cutoff struct {
	Multiplier Const `json:"multiplier"`
}

// Kind is "cutoff".
func (Cutoff) Kind() string { return "cutoff" }

// ShiftedReLU is max(0, R(x − cutoff)): what survives is x − cutoff, not x. Inputs: x, cutoff.
type ShiftedReLU struct{}

// Kind is "shifted_relu".
func (ShiftedReLU) Kind() string { return "shifted_relu" }
