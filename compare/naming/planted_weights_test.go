package naming_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
)

// stored is a linear operation whose matrix is another one.
func stored(change func(p *wrongPort, w testengine.Tensor)) func(p *wrongPort) []float64 {
	return func(p *wrongPort) []float64 {
		return testengine.WithWeight(0, func(w testengine.Tensor) { change(p, w) })(p.Call)
	}
}

// coded is a matrix in whole numbers of a step, up to most, in groups of a row or in all.
func coded(most, read float64, group func(w testengine.Tensor) int, code func(x float64) float64) func(p *wrongPort) []float64 {
	return stored(func(_ *wrongPort, w testengine.Tensor) {
		n := group(w)
		for at := 0; at < len(w.Data); at += n {
			g := w.Data[at:][:n]
			step := in32(largest(g) / most)
			for i, x := range g {
				g[i] = in32(code(in32(x/step)) * in32(step*read))
			}
		}
	})
}

func ofRow(w testengine.Tensor) int    { return w.Last() }
func ofTensor(w testengine.Tensor) int { return len(w.Data) }

func eachNumber(f func(x float64) float64) func(p *wrongPort) []float64 {
	return stored(func(_ *wrongPort, w testengine.Tensor) {
		for i, x := range w.Data {
			w.Data[i] = in32(f(x))
		}
	})
}

// Weights that are kept in other codes, whose bits are taken for those of another type, or whose rows are those of another matrix, are
// named with the code and the rows.
func TestNamesOfStoredWeights(t *testing.T) {
	const q, gate = "self_attn.q_proj", "mlp.gate_proj"
	signed := func(most float64) func(x float64) float64 {
		return func(x float64) float64 { return min(max(math.RoundToEven(x), -most), most) }
	}
	holdNames(t, []plantedName{
		{"one scale", "llama", 0, gate, coded(127, 1, ofTensor, signed(127)), "layers.*.mlp.gate_proj.weight is quantised to 8 bits with one scale"},
		{"one scale of 4 bits", "llama", 0, gate, coded(7, 1, ofTensor, signed(7)), "layers.*.mlp.gate_proj.weight is quantised to 4 bits with one scale"},
		{"by column", "llama", 0, gate, stored(func(_ *wrongPort, w testengine.Tensor) {
			for c := range w.Last() {
				var column []float64
				for i := c; i < len(w.Data); i += w.Last() {
					column = append(column, w.Data[i])
				}
				step := in32(largest(column) / 127)
				for i := c; i < len(w.Data); i += w.Last() {
					w.Data[i] = in32(math.RoundToEven(in32(w.Data[i]/step)) * step)
				}
			}
		}), "layers.*.mlp.gate_proj.weight is quantised to 8 bits with a scale per column"},
		{"other steps", "llama", 0, gate, coded(127, 127.0/128, ofRow, signed(127)), "layers.*.mlp.gate_proj.weight is quantised to 8 bits with a scale per row, and multiplied by 0.992188: written with 127 steps to the largest value, read with 128"},
		{"towards 0", "llama", 0, gate, coded(7, 1, ofRow, math.Trunc), "layers.*.mlp.gate_proj.weight is quantised to 4 bits with a scale per row, rounded toward 0"},
		{"float8", "llama", 0, gate, coded(448, 1, ofTensor, func(x float64) float64 {
			return float64(floats.FromF8E4M3(floats.F8E4M3(float32(x))))
		}), "layers.*.mlp.gate_proj.weight is quantised to float8 (e4m3) with one scale"},
		{"bits of another type", "llama", 0, gate, eachNumber(func(x float64) float64 {
			return float64(floats.FromF16(floats.BF16(float32(x))))
		}), "layers.*.mlp.gate_proj.weight has the bits of bfloat16, read as float16"},
		{"cut off", "llama", 0, gate, eachNumber(func(x float64) float64 {
			return float64(math.Float32frombits(math.Float32bits(float32(x)) >> 16 << 16))
		}), "layers.*.mlp.gate_proj.weight is truncated to bfloat16, not rounded"},
		{"cut off, but one number", "llama", 0, gate, stored(func(_ *wrongPort, w testengine.Tensor) {
			for i, x := range w.Data {
				w.Data[i] = float64(math.Float32frombits(math.Float32bits(float32(x)) >> 16 << 16))
			}
			w.Data[40] += 0.01
		}), ""},
		{"of another weight, transposed", "llama", 0, gate, stored(func(p *wrongPort, w testengine.Tensor) {
			down := p.tensor("layers.*.mlp.down_proj.weight")
			for i := range w.Data {
				w.Data[i] = down.Row(i % w.Last())[i/w.Last()]
			}
		}), "layers.*.mlp.down_proj.weight, transposed, is used, not layers.*.mlp.gate_proj.weight"},
		{"rows of another matrix", "linear", 0, "self_attn.k_proj", stored(func(p *wrongPort, w testengine.Tensor) {
			v := p.tensor("layers.*.self_attn.v_proj.weight")
			for k := range 4 {
				copy(w.Row(12+k), v.Row(k))
			}
		}), "layers.*.self_attn.k_proj.weight: rows 12 to 15 are rows 0 to 3 of layers.*.self_attn.v_proj.weight, as where a fused matrix is split at the wrong row, or has padding"},
		{"rows of another matrix, under its own bias", "llama", 0, "self_attn.k_proj", stored(func(p *wrongPort, w testengine.Tensor) {
			v := p.tensor("layers.*.self_attn.v_proj.weight")
			for k := range 4 {
				copy(w.Row(12+k), v.Row(k))
			}
		}), "layers.*.self_attn.k_proj.weight: rows 12 to 15 are rows 0 to 3 of layers.*.self_attn.v_proj.weight"},
		{"rows and biases of another matrix", "llama", 0, "self_attn.k_proj", func(p *wrongPort) []float64 {
			v, b := p.tensor("layers.*.self_attn.v_proj.weight"), p.tensor("layers.*.self_attn.v_proj.bias")
			c := p.Call
			c.W = []testengine.Tensor{{Shape: c.W[0].Shape, Data: slices.Clone(c.W[0].Data)}, {Shape: c.W[1].Shape, Data: slices.Clone(c.W[1].Data)}}
			copy(c.W[0].Data[12*c.W[0].Last():], v.Data[:4*v.Last()])
			copy(c.W[1].Data[12:], b.Data[:4])
			return c.Eval()
		}, "layers.*.self_attn.k_proj.weight: rows 12 to 15 are rows 0 to 3 of layers.*.self_attn.v_proj.weight"},
		{"padding", "llama", 0, q, stored(func(_ *wrongPort, w testengine.Tensor) {
			clear(w.Row(5))
			copy(w.Data[6*w.Last():12*w.Last()], slices.Clone(w.Data[5*w.Last():11*w.Last()]))
		}), "layers.*.self_attn.q_proj.weight: rows 5 to 6 are 0; rows 7 to 11 are rows 6 to 10, as where a fused matrix is split at the wrong row, or has padding"},
		{"rows in another order", "llama", 0, q, stored(func(_ *wrongPort, w testengine.Tensor) {
			old := testengine.Tensor{Shape: w.Shape, Data: slices.Clone(w.Data)}
			for k := range w.Shape[0] {
				copy(w.Row(k), old.Row(k/4*4+[]int{2, 0, 1, 3}[k%4]))
			}
		}), "layers.*.self_attn.q_proj.weight has its rows permuted within each 4: 2, 0, 1, 3"},
		{"rows of another matrix, one of them off", "linear", 0, "self_attn.k_proj", stored(func(p *wrongPort, w testengine.Tensor) {
			v := p.tensor("layers.*.self_attn.v_proj.weight")
			for k := range 4 {
				copy(w.Row(12+k), v.Row(k))
			}
			w.Row(13)[2] += 0.1
		}), ""},
	})
}
