package op

// SiLU is R(x / (1 + exp(−x))), in float32. Input: x.
type SiLU struct{}

// Kind is "silu".
func (SiLU) Kind() string { return "silu" }

// GELU is R(0.5·x·(1 + erf(x/√2))), in float32: the form with the error function. Input: x.
type GELU struct{}

// Kind is "gelu".
func (GELU) Kind() string { return "gelu" }
