package op

// Identity hands its input on. Input: x.
type Identity struct{}

// Kind is "identity".
func (Identity) Kind() string { return "identity" }

// Select takes one index of one axis away. Input: x.
type Select struct {
	Axis  int `json:"axis"`
	Index int `json:"index"`
}

// Kind is "select".
func (Select) Kind() string { return "select" }

// Scale is R(x · By). Input: x.
type Scale struct {
	By Const `json:"by"`
}

// Kind is "scale".
func (Scale) Kind() string { return "scale" }

// ScaleChannels is R(x ⊙ w), w along the last axis. Input: x. Weight: w.
type ScaleChannels struct{}

// Kind is "scale_channels".
func (ScaleChannels) Kind() string { return "scale_channels" }

// Add is R(a + b). Inputs: a, b.
type Add struct{}

// Kind is "add".
func (Add) Kind() string { return "add" }

// Sub is R(a − b). Inputs: a, b.
type Sub struct{}

// Kind is "sub".
func (Sub) Kind() string { return "sub" }

// Mul is R(a ⊙ b). Inputs: a, b.
type Mul struct{}

// Kind is "mul".
func (Mul) Kind() string { return "mul" }

// AddScale is R(R(a + b) · By), or R(R(a + b) / By) with Divide. Inputs: a, b.
type AddScale struct {
	By     Const `json:"by"`
	Divide bool  `json:"divide,omitempty"`
}

// Kind is "add_scale".
func (AddScale) Kind() string { return "add_scale" }

// Tanh is R(tanh x), in float32. Input: x.
type Tanh struct{}

// Kind is "tanh".
func (Tanh) Kind() string { return "tanh" }

// GELUTanh is 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), every step float32, one R. Input: x.
type GELUTanh struct{}

// Kind is "gelu_tanh".
func (GELUTanh) Kind() string { return "gelu_tanh" }

// Softcap is R(R(tanh R(x / Cap)) · Cap). Input: x.
type Softcap struct {
	Cap float64 `json:"cap"`
}

// Kind is "softcap".
func (Softcap) Kind() string { return "softcap" }
