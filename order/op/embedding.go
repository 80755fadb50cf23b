package op

// Argument is a tensor that the caller gives: token ids or positions, int64. No inputs.
type Argument struct{}

// Kind is "argument".
func (Argument) Kind() string { return "argument" }

// Lookup takes rows of a table: out[t] = W[ids[t]]. Input: ids. Weight: the table.
// With Fallback, an id outside [0, Rows) takes row 0, as the per-layer table of Gemma 3n does.
type Lookup struct {
	Rows     int  `json:"rows"`
	Fallback bool `json:"fallback,omitempty"`
}

// Kind is "lookup".
func (Lookup) Kind() string { return "lookup" }

// Rotary is one of the two tables of the rotary embedding. Input: positions. Shape [1, T, Dim].
//
//	inv[j] = 1 / Theta^(2j/Dim), j < Dim/2, every step rounded to float32; scaled as Scaling says
//	ang    = f32(inv[j] · position)
//	out    = R(cos ang) or R(sin ang), the half table written twice
type Rotary struct {
	Theta     float64 `json:"theta"`
	Dim       int     `json:"dim"`
	Scaling   string  `json:"scaling"` // "default", "linear" or "llama3"
	Factor    float64 `json:"factor,omitempty"`
	LowFreq   float64 `json:"low_freq_factor,omitempty"`
	HighFreq  float64 `json:"high_freq_factor,omitempty"`
	Positions int     `json:"original_max_position_embeddings,omitempty"`
	Sin       bool    `json:"sin"`
}

// Kind is "rotary".
func (Rotary) Kind() string { return "rotary" }
