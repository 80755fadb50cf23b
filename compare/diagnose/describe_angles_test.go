package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/order/op"
)

// Wrong rotary frequencies without a rule are named with a factor for each pair of channels, read off the cosines and sines. Angles that do not grow with
// the position are no frequencies.
func TestFrequenciesOfATableAreNamed(t *testing.T) {
	table := func(name string, sin bool) operation {
		return operation{name, op.Rotary{Theta: 100, Dim: 8, Scaling: "default", Sin: sin}, "btc", []int{1, 8, 8}, positions(), nil, nil}
	}
	for _, c := range []struct {
		of    operation
		angle func(position float64, pair int) float64
		says  string
	}{
		{table("rotary.cos", false), func(p float64, pair int) float64 { return p * []float64{1, 0.25, 0.1, 0.05}[pair] }, "the rotary frequencies are multiplied by a factor each: 0.790569 at pair 1; 1.58114 at pair 3"},
		{table("rotary.sin", true), func(p float64, pair int) float64 { return p * []float64{1, 0.25, 0.1, 0.05}[pair] }, "the rotary frequencies are multiplied by a factor each: 0.790569 at pair 1; 1.58114 at pair 3"},
		{table("rotary.cos", false), func(p float64, pair int) float64 { return math.Sqrt(p) * []float64{1, 0.25, 0.1, 0.05}[pair] }, ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 8
		f := named(t, m, c.of.made(t, m, func(_ [][]float64, y []float64) {
			for i := range y {
				a := float64(float32(c.angle(float64(i/8), i%4)))
				if y[i] = math.Cos(a); c.of.name == "rotary.sin" {
					y[i] = math.Sin(a)
				}
			}
			rounded(y)
		}))
		if f.What != c.says || f.Named() != (f.Mistake.Kind == "rope.frequencies-factors") {
			t.Errorf("%s: %q %v, want %q", f.Key(), f.What, f.Description, c.says)
		}
	}
}
