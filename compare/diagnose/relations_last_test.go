package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// An error of a product that is a matrix of low rank is an adapter. Noise, and an error by token alone, have no low rank or another name.
func TestErrorsOfLowRankAreNamed(t *testing.T) {
	added := func(rank, width int) func(_ [][]float64, y []float64) {
		return func(_ [][]float64, y []float64) {
			for i := range y {
				for r := range rank {
					y[i] += math.Sin(float64((r+2)*(i/width)+r)) * math.Cos(float64((r+3)*(i%width)*(i%width)))
				}
			}
			rounded(y)
		}
	}
	for _, c := range []struct {
		of    operation
		dtype hooks.DType
		wrong func(in [][]float64, y []float64)
		says  string
	}{
		{squareOf16(), hooks.F32, added(1, 16), "the result has a product of two matrices of rank 1 added, as where a LoRA adapter is merged into layers.*.self_attn.o_proj.weight, or missing from it"},
		{squareOf16(), hooks.F32, added(2, 16), "the result has a product of two matrices of rank 2 added, as where a LoRA adapter is merged into layers.*.self_attn.o_proj.weight, or missing from it"},
		{squareOf16(), hooks.F32, added(5, 16), ""},
		{squareOf16(), hooks.F32, func(_ [][]float64, y []float64) { // all channels have one error a token, with a sign of their own, as of a constant in the weights
			for i := range y {
				y[i] += math.Sin(float64(5*(i/16)+1)) * math.Copysign(1, math.Cos(float64(i%16*(i%16))))
			}
			rounded(y)
		}, ""},
		{squareOf16(), hooks.BF16, added(1, 16), ""},  // the errors of 16 bits hide what is not of the rank
		{hidden16(), hooks.F32, added(1, 16), ""},     // steps before the product may make any error
		{squareOf(520), hooks.F32, added(1, 520), ""}, // nobody looks for wrong channels of so large an operand
		{squareOf16(), hooks.F32, func(_ [][]float64, y []float64) { // a bias that no file has
			for i := range y {
				y[i] += math.Sin(float64(3 * (i % 16)))
			}
			rounded(y)
		}, ""},
		{squareOf16(), hooks.F32, func(in [][]float64, y []float64) { // two channels of the operand are other numbers
			for i := range y {
				w := squareOf16().matrix[i%16]
				y[i] += w[3]*math.Sin(float64(i/16*7)) + w[9]*math.Cos(float64(i/16*5))
			}
			rounded(y)
		}, ""},
		{squareOf16(), hooks.F32, noisy, ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 8
		e := c.of.made(t, m, c.wrong)
		e.Call.DType = c.dtype
		f := named(t, m, e)
		got := f.What
		if f.Relation.Kind != "error.of-low-rank" {
			got = ""
		}
		if got != c.says {
			t.Errorf("%s: %q %v, want %q", f.Key(), f.What, f.Description, c.says)
		}
	}
}

// squareOf is a product of 8 tokens with a square matrix.
func squareOf(n int) operation {
	o := operation{"layers.0.self_attn.o_proj", op.Linear{}, "btc", []int{1, 8, n}, []program.Value{{Shape: []int{1, 8, n}, Data: wave(8*n, 1)}}, nil, nil}
	for r := range n {
		o.matrix = append(o.matrix, wave(n, 31*r+2))
	}
	return o
}

// hidden16 is a product of the tanh of its input.
func hidden16() operation {
	o := squareOf16()
	o.op = tanhProduct{}
	return o
}

type tanhProduct struct{ op.Linear }

func (tanhProduct) Kind() string { return "tanh_product" }

func (p tanhProduct) Steps(b *program.Builder, in, w []program.Var) program.Var {
	return p.Linear.Steps(b, []program.Var{b.Tanh("tanh", in[0])}, w)
}
