package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// tallOf4 is a product of 4 channels with a matrix of 32 rows, which tells its operand.
func tallOf4() operation {
	o := operation{"layers.0.mlp.gate_proj", op.Linear{}, "btc", []int{1, 8, 32}, []program.Value{{Shape: []int{1, 8, 4}, Data: wave(32, 1)}}, nil, nil}
	for r := range 32 {
		o.matrix = append(o.matrix, wave(4, 31*r+2))
	}
	return o
}

// Heads, and channels of an operand, that are sums of others are named with their coefficients. Noise is no sum, nor are sums of tokens a mistake.
func TestMixedValuesAreNamed(t *testing.T) {
	operand := func(coefs [][]float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for j, w := range tallOf4().matrix[i%32] {
					for k, c := range coefs[j] {
						y[i] += w * c * in[0][i/32*4+k]
					}
				}
			}
		}
	}
	for _, c := range []struct {
		of    operation
		wrong func(in [][]float64, y []float64)
		kind  diagnose.Kind
		says  string
	}{
		{tallOf4(), operand([][]float64{{1, 0, 0, 0}, {1, 1, 0, 0}, {0, 0, 2, -1}, {0, 0, 0, 1}}), "value.mixed", "the channels of layers.*.post_attention_layernorm are sums of channels: channel 1 is channel 0 + channel 1; channel 2 is 2 times channel 2 + -1 times channel 3"},
		{tallOf4(), operand([][]float64{{0, 0, 1, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}, {0, 0, 0, 0}}), "value.mixed", "the channels of layers.*.post_attention_layernorm are sums of channels: channel 0 is channel 2; channel 2 is channel 0; channel 3 is 0"},
		{squareOf16(), func(in [][]float64, y []float64) { // any matrix tells two channels
			for i := range y {
				w := squareOf16().matrix[i%16]
				y[i] += (w[3] - w[7]) * (in[0][i/16*16+7] - in[0][i/16*16+3])
			}
		}, "indexes.others", "layers.*.self_attn.context has at channels 3, 7 what belongs at 7, 3"},
		{squareOf16(), func(in [][]float64, y []float64) {
			for i := range y {
				w := squareOf16().matrix[i%16]
				y[i] -= w[3]*in[0][i/16*16+3] + w[15]*in[0][i/16*16+15]
			}
		}, "factors.inserted", "layers.*.self_attn.context is multiplied by 0 at channels 3, 15"},
		{scoresOf4(), func(_ [][]float64, y []float64) {
			for i := range 64 {
				y[i], y[128+i] = y[i]+y[64+i], y[128+i]+y[192+i]
			}
		}, "value.mixed", "the heads of the result are sums of heads: head 0 is head 0 + head 1; head 2 is head 2 + head 3"},
		{scoresOf4(), func(_ [][]float64, y []float64) {
			for i := range y {
				if i/8%8 == 3 {
					y[i] += y[i-8]
				}
			}
		}, "", ""},
		{tallOf4(), func(_ [][]float64, y []float64) { noisy(nil, y) }, "", ""},
	} {
		m := model(t)
		if c.of.configure != nil {
			c.of.configure(m.List.Config)
		}
		m.Passes[0].Tokens = 8
		f := named(t, m, c.of.made(t, m, func(in [][]float64, y []float64) { c.wrong(in, y); rounded(y) }))
		if f.Mistake.Kind != c.kind || f.What != c.says {
			t.Errorf("%s: %q %+v, want %s: %q", f.Key(), f.What, f.Description, c.kind, c.says)
		}
	}
}

// The operand of a product with a tall matrix follows from the result, so a function of it is named, too.
func TestFunctionsOfAnOperandAreNamed(t *testing.T) {
	for name, f := range map[string]func(x float64) float64{
		"the sigmoid of layers.*.post_attention_layernorm": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		"the silu of layers.*.post_attention_layernorm":    func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		"the square of layers.*.post_attention_layernorm":  func(x float64) float64 { return x * x },
	} {
		m := model(t)
		m.Passes[0].Tokens = 8
		f := named(t, m, tallOf4().made(t, m, func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for j, w := range tallOf4().matrix[i%32] {
					y[i] += w * f(in[0][i/32*4+j])
				}
			}
			rounded(y)
		}))
		if want := "layers.*.post_attention_layernorm is " + name; f.Mistake.Kind != "value.formula" || f.What != want {
			t.Errorf("%s: %q %v, want %q", f.Key(), f.What, f.Description, want)
		}
	}
}

// A value within an operation that has only multiples of a step is named with the step, by how it is rounded. Right values on a grid are none.
func TestValuesOnAGridAreNamed(t *testing.T) {
	const step = 0x1p-13
	norm := func(round func(x float64) float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for row := 0; row < len(y); row += 16 {
				sum := 0.0
				for _, x := range in[0][row:][:16] {
					sum += x * x / 16
				}
				by := 1 / math.Sqrt(sum+1e-6)
				for i := row; i < row+16; i++ {
					y[i] *= round(by) / by
				}
			}
		}
	}
	for _, c := range []struct {
		of    operation
		wrong func(in [][]float64, y []float64)
		says  string
	}{
		{squareOf16(), func(_ [][]float64, y []float64) {
			copy(y, each(y, func(x float64) float64 { return math.Round(x/0.271) * 0.271 }))
		}, "the result has only multiples of 0.271: it is quantised"},
		{squareOf16(), func(_ [][]float64, y []float64) {
			copy(y, each(y, func(x float64) float64 { return math.Trunc(x/0.375) * 0.375 }))
		}, "the result has only multiples of 0.375: it is quantised"},
		{normOf8(), norm(func(x float64) float64 { return math.Round(x/step) * step }), "step rms_norm.rsqrt has only multiples of 0.00012207: it is quantised"},
		{normOf8(), norm(func(x float64) float64 { return math.Trunc(x/step) * step }), "step rms_norm.rsqrt has only multiples of 0.00012207: it is quantised"},
		{smallResults(0.75), func(_ [][]float64, y []float64) { copy(y, each(y, math.Trunc)) }, "the result has only multiples of 1: it is quantised"},
		{squareOf16(), func(_ [][]float64, y []float64) { noisy(nil, y) }, ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 8
		f := named(t, m, c.of.made(t, m, func(in [][]float64, y []float64) { c.wrong(in, y); rounded(y) }))
		if f.What != c.says || f.Named() != (f.Mistake.Kind == "value.on-grid") {
			t.Errorf("%s: %q %+v, want %q", f.Key(), f.What, f.Description, c.says)
		}
	}
}

// smallResults is a norm with its weight times a factor.
func smallResults(by float64) operation {
	o := plainNorm()
	o.matrix = matrix{each(o.matrix[0], func(x float64) float64 { return float64(float32(by * x)) })}
	return o
}
