package diagnose_test

import (
	"math"
	"testing"
)

// An error of a product that is a matrix of low rank is an adapter. Noise, and an error by token alone, have no low rank or another name.
func TestErrorsOfLowRankAreNamed(t *testing.T) {
	added := func(rank int) func(_ [][]float64, y []float64) {
		return func(_ [][]float64, y []float64) {
			for i := range y {
				for r := range rank {
					y[i] += math.Sin(float64((r+2)*(i/16)+r)) * math.Cos(float64((r+3)*(i%16)*(i%16)))
				}
			}
			rounded(y)
		}
	}
	for _, c := range []struct {
		wrong func(in [][]float64, y []float64)
		says  string
	}{
		{added(1), "the result has a product of two matrices of rank 1 added: a LoRA adapter is merged into layers.*.self_attn.o_proj.weight, or missing from it"},
		{added(2), "the result has a product of two matrices of rank 2 added: a LoRA adapter is merged into layers.*.self_attn.o_proj.weight, or missing from it"},
		{added(5), ""},
		{func(_ [][]float64, y []float64) { // a bias that no file has
			for i := range y {
				y[i] += math.Sin(float64(3 * (i % 16)))
			}
			rounded(y)
		}, ""},
		{func(in [][]float64, y []float64) { // two channels of the operand are other numbers
			for i := range y {
				w := squareOf16().matrix[i%16]
				y[i] += w[3]*math.Sin(float64(i/16*7)) + w[9]*math.Cos(float64(i/16*5))
			}
			rounded(y)
		}, ""},
		{noisy, ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 8
		f := named(t, m, squareOf16().made(t, m, c.wrong))
		got := f.What
		if f.Relation.Kind != "error.of-low-rank" {
			got = ""
		}
		if got != c.says {
			t.Errorf("%s: %q %v, want %q", f.Key(), f.What, f.Description, c.says)
		}
	}
}
