package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// normOf8By is a norm of 8 tokens with 16 channels, by an operation.
func normOf8By(o program.Op) operation {
	n := normOf8()
	n.op = o
	return n
}

// smallNorm has rows whose mean square is below and above its epsilon.
func smallNorm() operation {
	n := normOf8By(op.RMSNorm{Eps: 0.25, Gain: op.Plain})
	for i, x := range n.in[0].Data {
		n.in[0].Data[i] = float64(float32(x * float64(i/16) / 4))
	}
	return n
}

// actOf8 is an operation of a tensor of 8 tokens with 16 channels, or of several.
func actOf8(o program.Op, inputs int) operation {
	a := operation{"layers.0.mlp.act_fn", o, "btc", []int{1, 8, 16}, nil, nil, nil}
	if inputs > 1 {
		a.name = "layers.0.mlp.gated"
	}
	for k := range inputs {
		a.in = append(a.in, program.Value{Shape: []int{1, 8, 16}, Data: wave(128, 1+8*k)})
	}
	return a
}

// ofEach has a function of each element that is read.
func ofEach(f func(x float64) float64) wrongly {
	return func(in [][]float64, y []float64) { copy(y, each(in[0], f)) }
}

// ofResult has a function of each element of the right result.
func ofResult(f func(x float64) float64) wrongly {
	return func(_ [][]float64, y []float64) { copy(y, each(y, f)) }
}

// timesVector multiplies what is read by a number of each row, and by a vector. It is told the row, and all rows.
func timesVector(by func(row, all []float64) float64, w func(t, c int) float64) wrongly {
	return func(in [][]float64, y []float64) {
		for i, x := range in[0] {
			y[i] = x * by(in[0][i/16*16:][:16], in[0]) * w(i/16, i%16)
		}
	}
}

// Steps of norms and of activations that are others, left out, taken twice or over other axes are named.
func TestStepsAreNamed(t *testing.T) {
	const root, third = 0.7978845608028654, 0.044715
	inner := func(x float64) float64 { return root * (x + third*x*x*x) }
	geluOf := func(f func(u float64) float64) wrongly {
		return ofEach(func(x float64) float64 { return x * (1 + f(inner(x))) / 2 })
	}
	w := wave(16, 5)
	weight := func(_, c int) float64 { return w[c] }
	squares := func(f func(row, all []float64) float64) wrongly {
		return timesVector(func(row, all []float64) float64 { return 1 / math.Sqrt(f(row, all)) }, weight)
	}
	right := func(row, _ []float64) float64 { return 1 / math.Sqrt(meanSquare(row, 16, 16)+1e-6) }
	below := func(f func(ms float64) float64) wrongly {
		return timesVector(func(row, _ []float64) float64 { return f(meanSquare(row, 16, 16)) }, weight)
	}
	average := func(x []float64) (mean float64) {
		for _, v := range x {
			mean += v / float64(len(x))
		}
		return mean
	}
	acrossTokens := func(in [][]float64, y []float64) {
		for i, x := range in[0] {
			sum := 0.0
			for k := i % 16; k < 128; k += 16 {
				sum += in[0][k] * in[0][k] / 8
			}
			y[i] = x / math.Sqrt(sum+1e-6) * w[i%16]
		}
	}
	centred := func(in [][]float64, y []float64) {
		mean := average(in[0])
		for i, x := range in[0] {
			y[i] = (x - mean) / math.Sqrt(meanSquare(in[0], 128, 128)-mean*mean+1e-6) * w[i%16]
		}
	}
	tanh, silu := actOf8(op.GELUTanh{}, 1), actOf8(op.SiLU{}, 1)
	plain := normOf8By(op.RMSNorm{Eps: 1e-6, Gain: op.Plain})
	for _, c := range []looped{
		{"activation.step-as", "the activation gelu_tanh has x/(1+|x|) instead of tanh", tanh, geluOf(func(u float64) float64 { return u / (1 + math.Abs(u)) }), geluOf(func(u float64) float64 { return u / (1 + u*u) })},
		{"activation.other-step-as", "the activation is gelu_tanh, not silu, with erf(x) instead of tanh", silu, geluOf(math.Erf), geluOf(math.Atan)},
		{"activation.other-step-left-out", "the activation is gelu_tanh, not silu, and lacks tanh", silu, geluOf(func(u float64) float64 { return u }), geluOf(func(u float64) float64 { return 1.25 * u })},
		{"activation.other-number", "the activation is gelu_tanh, not silu, with 0.63662, its square instead of √(2/π), 0.797885", silu, geluOf(func(u float64) float64 { return math.Tanh(root * u) }), geluOf(func(u float64) float64 { return math.Tanh(0.9 * u) })},
		{
			"activation.other-operand-alone", "the activation is gelu_tanh, not silu, and uses only one operand of sum", silu,
			ofEach(func(x float64) float64 { return x * (1 + math.Tanh(root*x)) / 2 }), ofEach(func(x float64) float64 { return x * (1 + math.Tanh(0.85*x)) / 2 }),
		},
		{"addend.inserted", "0.5 is added to the result", sumOf8(), ofResult(func(x float64) float64 { return x + 0.5 }), ofResult(func(x float64) float64 { return x + 0.375 })},
		{"factor.inserted", "the result is multiplied by 1.37", sumOf8(), ofResult(func(x float64) float64 { return x * 1.37 }), ofResult(func(x float64) float64 { return x * 1.38 })},
		{
			"addend.twice", "the +1 is applied twice: +2 in all", normOf8By(op.RMSNorm{Eps: 1e-6, Gain: op.OnePlus}),
			timesVector(right, func(_, c int) float64 { return 2 + w[c] }), timesVector(right, func(_, c int) float64 { return 3 + w[c] }),
		},
		{"division.twice", "the division by 1.5 is applied twice: by 2.25 in all", actOf8(op.AddScale{By: op.Const{Value: 1.5}, Divide: true}, 2), ofResult(func(x float64) float64 { return x / 1.5 }), ofResult(func(x float64) float64 { return x / 1.25 })},
		{
			"axis.parts", "step rms_norm.sum of mean runs over each of 2 parts separately, not over all", plain,
			func(in [][]float64, y []float64) { copy(y, byParts(in[0], w, 2)) }, func(in [][]float64, y []float64) { copy(y[64:], byParts(in[0], w, 2)[64:]) },
		},
		{"axis.wrong", "step rms_norm.sum of mean runs over the wrong axis: its tokens, not its channels", plain, acrossTokens, nil},
		{
			"axis.two", "step rms_norm.sum of mean runs over two axes: also over its tokens", plain,
			squares(func(_, all []float64) float64 { return meanSquare(all, 128, 128) + 1e-6 }), squares(func(_, all []float64) float64 { return meanSquare(all, 64, 64) + 1e-6 }),
		},
		{"axis.two-all", "all sums run over two axes: also over its tokens", normOf8By(op.LayerNorm{Eps: 1e-6}), centred, nil},
		{"axis.read", "layers.*.input_layernorm.weight is read along the tokens, not along the channels: wrong axis", plain, timesVector(right, func(t, _ int) float64 { return w[t] }), timesVector(right, func(t, _ int) float64 { return w[t+1] })},
		{
			"count.divisor", "rms_norm.mean divides its sum by 17 terms, not 16", plain,
			squares(func(row, _ []float64) float64 { return meanSquare(row, 16, 17) + 1e-6 }), squares(func(row, _ []float64) float64 { return meanSquare(row, 16, 15) + 1e-6 }),
		},
		{
			"count.first-left-out", "off by one: rms_norm.mean skips the first of 16 terms", plain,
			squares(func(row, _ []float64) float64 { return meanSquare(row[1:], 15, 15) + 1e-6 }), squares(func(row, _ []float64) float64 { return meanSquare(row[2:], 14, 14) + 1e-6 }),
		},
		{
			"count.last-left-out", "off by one: rms_norm.mean skips the last of 16 terms", plain,
			squares(func(row, _ []float64) float64 { return meanSquare(row, 15, 15) + 1e-6 }), squares(func(row, _ []float64) float64 { return meanSquare(row, 14, 14) + 1e-6 }),
		},
		{
			"epsilon.least-value", "epsilon is a minimum under the root (max), and should be added", smallNorm(),
			below(func(ms float64) float64 { return 1 / math.Sqrt(max(ms, 0.25)) }), below(func(ms float64) float64 { return 1 / math.Sqrt(max(ms, 0.5)) }),
		},
		{
			"epsilon.after-root", "epsilon is added after the root, not under it", smallNorm(),
			below(func(ms float64) float64 { return 1 / (math.Sqrt(ms) + 0.25) }), below(func(ms float64) float64 { return 1 / (math.Sqrt(ms) + 0.5) }),
		},
		{
			"epsilon.after-inverse", "epsilon is added after the inverse root, not under the root", normOf8By(op.RMSNorm{Eps: 0.25, Gain: op.Plain}),
			below(func(ms float64) float64 { return 1/math.Sqrt(ms) + 0.25 }), below(func(ms float64) float64 { return 1/math.Sqrt(ms) + 0.5 }),
		},
	} {
		c.hold(t)
	}
}
