package diagnose_test

import (
	"math"
	"testing"
)

// What the right operation gives of inputs that were rounded to whole numbers is described by the inputs, as few as do.
func TestDescriptionsOfWholeNumbers(t *testing.T) {
	same := func(x float64) float64 { return x }
	tenths := func(x float64) float64 { return math.RoundToEven(10*x) / 10 }
	for _, c := range []struct {
		name string
		in   [2]func(x float64) float64
		want string // empty for no name
	}{
		{"one", [2]func(x float64) float64{same, math.RoundToEven}, "layers.*.self_attn.o_proj is rounded to whole numbers: its quantisation has no scale, or a scale that is never below 1"},
		{"both", [2]func(x float64) float64{math.RoundToEven, math.RoundToEven}, "layers.*.in and layers.*.self_attn.o_proj is rounded to whole numbers: its quantisation has no scale, or a scale that is never below 1"},
		{"truncated", [2]func(x float64) float64{math.Trunc, same}, "layers.*.in is truncated to whole numbers"},
		{"tenths", [2]func(x float64) float64{tenths, tenths}, ""},
	} {
		m := model(t)
		e := planted(t, m, "layers.0.attn_residual", 0, func(in, _ [][]float64) []float64 {
			y := make([]float64, len(in[0]))
			for i := range y {
				y[i] = float64(float32(c.in[0](in[0][i]) + c.in[1](in[1][i])))
			}
			return y
		})
		f := named(t, m, e)
		if f.What != c.want {
			t.Errorf("%s: %q, %v", c.name, f.What, f.Description)
		}
	}
}
