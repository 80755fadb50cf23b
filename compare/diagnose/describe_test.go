package diagnose_test

import (
	"math"
	"strings"
	"testing"

)

// What has no name is described: by one number, by numbers along an axis, those of a weight, or by its zeros. What is right by itself is not.
func TestDescriptions(t *testing.T) {
	const first, second = "layers.0.input_layernorm", "layers.2.input_layernorm"
	const width = 16
	at := func(i int) (token, channel int) { return i / width, i % width }
	rounded := func(x float64) float64 { return float64(float32(x)) }
	own := func(channel int) float64 { return rounded(1.1 + math.Sin(float64(3*channel))/7) }
	for _, c := range []struct {
		name  string
		wrong func(y []float64, i int) float64
		want  string
	}{
		{"a factor a channel", func(y []float64, i int) float64 { _, k := at(i); return rounded(y[i] * own(k)) }, "each channel of the result has a factor of its own, the same for each token and layer: 1.1"},
		{"a term a channel", func(y []float64, i int) float64 { _, k := at(i); return rounded(y[i] + own(k)) }, "each channel of the result has a number of its own added, the same for each token and layer: 1.1"},
		{"a factor a token", func(y []float64, i int) float64 { k, _ := at(i); return rounded(y[i] * own(k)) }, "each token of the result has a factor of its own, the same for each channel and layer: 1.1, 1.12016, 1.06"},
		{"noise", func(y []float64, i int) float64 { return rounded(y[i] * (1 + math.Sin(float64(i*i))/3)) }, ""},
		{"a part of it is 0", func(y []float64, i int) float64 {
			if math.Sin(float64(i*i)) > 0 {
				return 0
			}
			return rounded(y[i] * (1 + math.Sin(float64(i))/300))
		}, "36 of 94 wrong elements of the result are 0"},
	} {
		m := model(t)
		wrong := func(in, w [][]float64) []float64 {
			y := normed(in[0], w[0], 1e-6)
			out := make([]float64, len(y))
			for i := range y {
				out[i] = c.wrong(y, i)
			}
			return out
		}
		f := named(t, m, planted(t, m, first, 0, wrong), planted(t, m, second, 0, wrong))
		switch {
		case f.Named():
			t.Errorf("%s has the name %q", c.name, f.What)
		case c.want == "" && f.Description != nil:
			t.Errorf("%s is described: %s", c.name, f.Description)
		case c.want != "" && (f.Description == nil || !strings.HasPrefix(f.Description.String(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, f.Description, c.want)
		}
	}
}
