package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
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
		{"halves", func(in, w [][]float64) []float64 { return byParts(in[0], w[0], 2) }, "step rms_norm.sum of mean runs over each of 2 parts separately"},
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
		}, "the result is clipped at a minimum of -0.5"},
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
		}, "dropout is left on: some elements are 0, the others are divided by 0.75"},
		{"the weight of the other rotation", func(in, w [][]float64) []float64 {
			return normed(in[0], otherRotation(w[0], 8), 1e-6)
		}, "layers.*.input_layernorm.weight has the channels of each head of 8 in the other RoPE layout (2 × 4)"},
		{"the weight of the other rotation, but one is off", func(in, w [][]float64) []float64 {
			x := otherRotation(w[0], 8)
			x[3] *= 1.01
			return normed(in[0], x, 1e-6)
		}, "the result is multiplied by a number for each channel: "},
	} {
		m := model(t)
		m.List.Config.HeadDim = 8 // two heads in a row
		f := named(t, m, planted(t, m, "layers.0.input_layernorm", 0, c.wrong))
		if c.want == "" && f.Named() || !strings.HasPrefix(f.What, c.want) {
			t.Errorf("%s: %q, want %q", c.name, f.Text(), c.want)
		}
	}
}

// otherRotation has the channels of each head by turns from its two halves.
func otherRotation(w []float64, head int) []float64 {
	y := make([]float64, len(w))
	for at := 0; at < len(w); at += head {
		for i := range head {
			y[at+i] = w[at+i%2*(head/2)+i/2]
		}
	}
	return y
}

// A penalty on the ids that were read has its number. One on other ids has no name, nor has one of two numbers.
func TestNamesOfPenalties(t *testing.T) {
	ids := []int{3, 8, 15}
	for _, c := range []struct {
		name string
		on   []int
		to   func(x float64, id int) float64
		want string
	}{
		{"divided above 0, multiplied below", ids, func(x float64, _ int) float64 {
			if x > 0 {
				return x / 1.25
			}
			return x * 1.25
		}, "a repetition penalty of 1.25 is applied to the logits of the input's ids"},
		{"lowered", ids, func(x float64, _ int) float64 { return x - 0.5 }, "a presence penalty of 0.5 is subtracted from the logits of the input's ids"},
		{"on another id", []int{3, 8, 14}, func(x float64, _ int) float64 { return x - 0.5 }, ""},
		{"of two numbers", ids, func(x float64, id int) float64 { return x - 0.5 - float64(id%2)/4 }, ""},
	} {
		m := model(t)
		read, list := m.Read, m.List.Index(order.InputIDs)
		m.Has = func(n order.Node) bool { return n.Entry == list }
		m.Read = func(n order.Node) (program.Value, error) {
			if n.Entry != list {
				return read(n)
			}
			return program.Value{Shape: []int{1, tokens}, Data: []float64{3, 8, 15}}, nil
		}
		f := named(t, m, planted(t, m, "logits", 0, func(in, _ [][]float64) []float64 {
			y := slices.Clone(in[0])
			for i := range y {
				if id := i % m.List.Config.HiddenSize; slices.Contains(c.on, id) {
					y[i] = floats.Round(hooks.F32, c.to(y[i], id))
				}
			}
			return y
		}))
		if c.want == "" && f.Named() || !strings.HasPrefix(f.What, c.want) {
			t.Errorf("%s: %q, want %q", c.name, f.Text(), c.want)
		}
	}
}
