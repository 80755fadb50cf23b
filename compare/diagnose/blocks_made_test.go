package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// productOf8 multiplies two tensors of 8 tokens with 16 channels.
func productOf8() operation {
	return operation{"layers.0.mlp.gated", op.Mul{}, "btc", []int{1, 8, 16}, []program.Value{{Shape: []int{1, 8, 16}, Data: wave(128, 1)}, {Shape: []int{1, 8, 16}, Data: wave(128, 9)}}, nil, nil}
}

// inPlaceRotation rotates pairs of channels in place: the second half of the channels reads the rotated first half.
func inPlaceRotation(in [][]float64, y []float64) {
	x, cos, sin := in[0], in[1], in[2]
	for i := range y {
		head, token, c := i/64, i/8%8, i%8
		at := token*16 + head*8
		own := x[at+c] * cos[token*8+c]
		if c < 4 {
			y[i] = own - x[at+c+4]*sin[token*8+c]
		} else {
			y[i] = own + float64(float32(y[i-4]))*sin[token*8+c]
		}
	}
}

// Kernels that compute a part of a result from other elements, or with another number, or in place, are named with the part. Noise in a part, and a part
// with one number for each element, are not.
func TestBlocksAreNamed(t *testing.T) {
	scores := scoresOf4()
	for _, c := range []struct {
		name  string
		of    operation
		wrong func(in [][]float64, y []float64)
		kind  diagnose.Kind
		says  string
	}{
		{"a tail that keeps an operand", productOf8(), func(in [][]float64, y []float64) {
			for i := range y {
				if c := i % 16; c >= 12 {
					y[i] = in[0][i] * in[1][i-8]
				}
			}
		}, "indexes.others", "layers.*.mlp.up_proj has at channels 12 to 15 what belongs at 4 to 7"},
		{"a tile of other tokens", squareOf16(), func(_ [][]float64, y []float64) {
			for i := range y {
				if t, c := i/16, i%16; t >= 4 && t < 6 && c >= 8 {
					y[i] = y[i-3*16]
				}
			}
		}, "indexes.others", "the result has at tokens 4 to 5 what belongs at 1 to 2, only at channels 8 to 15"},
		{"keys of the tile before", scores, func(_ [][]float64, y []float64) {
			for i := range y {
				if i%8 == 5 || i%8 == 7 {
					y[i] = y[i-4]
				}
			}
		}, "indexes.others", "the result has at keys 5, 7 what belongs at 1, 3"},
		{"scales of rows", plainNorm(), func(in [][]float64, y []float64) {
			for i := range y {
				row := []int{0, 0, 2, 2, 2, 5, 6, 6}[i/16] * 16
				y[i] = in[0][i] / math.Sqrt(meanSquare(in[0][row:], 16, 16)+0.01) * plainNorm().matrix[0][i%16]
			}
		}, "indexes.others", "step rms_norm.rsqrt has at tokens 1, 3, 4, 7 what belongs at 0, 2, 2, 6"},
		{"the sum of a part", plainNorm(), func(in [][]float64, y []float64) {
			for i := range y {
				if row := i / 16 * 16; i%16 >= 8 {
					y[i] = in[0][i] / math.Sqrt(meanSquare(in[0][row+8:], 8, 16)+0.01) * plainNorm().matrix[0][i%16]
				}
			}
		}, "sum.terms", "the terms of step rms_norm.sum of mean are multiplied by 0 at channels 0 to 7, only at channels 8 to 15"},
		{"a scale of some tokens", squareOf16(), func(_ [][]float64, y []float64) {
			for i := range y[80:] {
				y[80+i] *= 1.37
			}
		}, "factor.inserted", "the result is multiplied by 1.37, only at tokens 5 to 7"},
		{"a scale of a tile", squareOf16(), func(_ [][]float64, y []float64) {
			for i := range y {
				if t, c := i/16, i%16; t >= 2 && t < 5 && c < 4 {
					y[i] *= 0.73
				}
			}
		}, "factor.inserted", "the result is multiplied by 0.73, only at tokens 2 to 4 and channels 0 to 3"},
		{"another step in a head", scores, func(_ [][]float64, y []float64) {
			for i := range y[128:192] {
				y[128+i] = -y[128+i]
			}
		}, "factors.inserted", "the result is multiplied by -1 at head 2"},
		{"a mean in place of a tensor", sumOf8(), func(in [][]float64, y []float64) {
			for i := range y {
				mean := 0.0
				for _, v := range in[0][i/16*16:][:16] {
					mean += v / 16
				}
				y[i] = float64(float32(mean)) + in[1][i]
			}
		}, "value.statistic", "layers.*.in is one number in each row: the mean of the row"},
		{"a rotation in place", rotation(), inPlaceRotation, "input.overwritten", "step rope.cat reads layers.*.self_attn.q_norm after the operation has overwritten it with its result: the operation is done in place"},
		{"another tensor in some channels", sumOf8(), func(in [][]float64, y []float64) {
			for i := range y {
				if i%16 < 6 {
					y[i] = 2 * in[1][i]
				}
			}
		}, "operand.other", "step add.sum reads layers.*.self_attn.o_proj, not layers.*.in, only at channels 0 to 5"},
		{"noise in a part", squareOf16(), func(_ [][]float64, y []float64) {
			for i := range y {
				if i%16 >= 8 {
					y[i] *= 1 + math.Sin(float64(i*i+1))/3
				}
			}
		}, "", ""},
		{"tokens that are no other tokens", productOf8(), func(_ [][]float64, y []float64) { noisy(nil, y[64:]) }, "", ""},
	} {
		m := model(t)
		if c.of.configure != nil {
			c.of.configure(m.List.Config)
		}
		m.Passes[0].Tokens = 8
		f := named(t, m, c.of.made(t, m, func(in [][]float64, y []float64) { c.wrong(in, y); rounded(y) }))
		if f.Mistake.Kind != c.kind || f.What != c.says || c.kind == "" && f.Named() {
			t.Errorf("%s: %q: %s %+v, want %s: %q", c.name, f.What, f.Key(), f.Description, c.kind, c.says)
		}
	}
}
