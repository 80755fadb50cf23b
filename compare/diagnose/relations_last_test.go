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
		{added(1), "a product of two matrices of rank 1 is added to layers.*.self_attn.o_proj.weight: a LoRA adapter is merged into the weight, or missing from it"},
		{added(2), "a product of two matrices of rank 2 is added to layers.*.self_attn.o_proj.weight: a LoRA adapter is merged into the weight, or missing from it"},
		{added(5), ""},
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
