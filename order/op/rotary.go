package op

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// Rotary is one of the two tables of the rotary embedding. Input: positions. Shape [1, T, Dim].
//
//	inv[j] = 1 / Theta^(2j/Dim), j < Dim/2, every step rounded to float32; scaled as Scaling says
//	ang    = f32(inv[j] · position), the frequencies by the way of the engine
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

// Steps computes the table. Frequencies are constants of the model; engines make them in several ways, see [program.Frequencies].
func (o Rotary) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	positions := b.Permute(in[0], 0, 1, -1)
	angle := b.Turned("angle", o.made(), positions)
	function := b.Cos
	if o.Sin {
		function = b.Sin
	}
	half := function("table", angle)
	return b.Cat(2, half, half)
}

// f32 rounds to float32.
func f32(x float64) float64 { return float64(float32(x)) }

// Frequencies are what the pairs of a table turn by, a position.
func Frequencies(o Rotary) []float64 { return o.frequencies() }

// frequencies are inv, scaled; every step float32.
func (o Rotary) frequencies() []float64 {
	inv := make([]float64, o.Dim/2)
	for j := range inv {
		inv[j] = o.scaled(o.inverse(j))
	}
	return inv
}

// llama3 scales one frequency by its wavelength λ = 2π/inv: long ones by 1/Factor, short ones not at all, those between
// the two limits by a mixture (transformers, modeling_rope_utils). A number over a tensor is there the rounded
// reciprocal times the number.
func (o Rotary) llama3(inv float64) float64 {
	n := float64(o.Positions)
	wavelength := f32(f32(1/inv) * f32(2*math.Pi))
	switch {
	case wavelength > f32(n/o.LowFreq):
		return f32(inv / f32(o.Factor))
	case wavelength < f32(n/o.HighFreq):
		return inv
	}
	smooth := f32(f32(f32(f32(1/wavelength)*f32(n))-f32(o.LowFreq)) / f32(o.HighFreq-o.LowFreq))
	return f32(f32(f32(f32(1-smooth)*inv)/f32(o.Factor)) + f32(smooth*inv))
}
