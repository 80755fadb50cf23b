package diagnose_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// byParts is an RMS norm of each of some parts of a row by itself.
func byParts(x, w []float64, parts int) []float64 {
	y := make([]float64, len(x))
	n := len(w) / parts
	for at := 0; at < len(x); at += n {
		k := at % len(w)
		copy(y[at:], normed(x[at:][:n], w[k:][:n], 1e-6))
	}
	return y
}

// What is done to parts, what is clipped on one side, and what is computed in a narrower type has its name. What is nearly so has none.
func TestNamesOfParts(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong func(in, w [][]float64) []float64
		want  string // "" for no name
	}{
		{"halves", func(in, w [][]float64) []float64 { return byParts(in[0], w[0], 2) }, "step rms_norm.sum of mean is taken over each of 2 parts by itself"},
		{"halves, but one row is off", func(in, w [][]float64) []float64 {
			y := byParts(in[0], w[0], 2)
			y[1] *= 1.01
			return y
		}, ""},
		{"clipped", func(in, w [][]float64) []float64 {
			y := normed(in[0], w[0], 1e-6)
			for i := range y {
				y[i] = max(y[i], -0.5)
			}
			return y
		}, "the result is never less than -0.5"},
		{"clipped at two numbers", func(in, w [][]float64) []float64 {
			y := normed(in[0], w[0], 1e-6)
			for i := range y {
				if y[i] < -0.5 {
					y[i] = -0.5 - float64(i%2)/8
				}
			}
			return y
		}, ""},
		{"dropout", func(in, w [][]float64) []float64 {
			y := normed(in[0], w[0], 1e-6)
			for i := range y {
				if y[i] = floats.Round(hooks.F32, y[i]/0.75); i%17 == 3 {
					y[i] = 0
				}
			}
			return y
		}, "some elements are 0, and the others are divided by 0.75"},
	} {
		m := model(t)
		f := named(t, m, planted(t, m, "layers.0.input_layernorm", 0, c.wrong))
		if c.want == "" && f.Named() || !strings.HasPrefix(f.What, c.want) {
			t.Errorf("%s: %q, want %q", c.name, f.Text(), c.want)
		}
	}
}
