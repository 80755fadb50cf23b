package diagnose_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
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
		{"a factor a channel", func(y []float64, i int) float64 { _, k := at(i); return rounded(y[i] * own(k)) }, "the result is multiplied by a number for each channel: 1.1, 1.12016, 1.06008, 1.15887, 1.02335, 1.1929, ... (16 different values, from "},
		{"a term a channel", func(y []float64, i int) float64 { _, k := at(i); return rounded(y[i] + own(k)) }, "constants are added to the result: a number for each channel: 1.1, 1.12016, 1.06008, 1.15887, 1.02335, 1.1929, ... (16 different values, from "},
		{"a factor a token", func(y []float64, i int) float64 { k, _ := at(i); return rounded(y[i] * own(k)) }, "each token of the result has its own factor, the same for each channel and layer: 1.1, 1.12016, 1.06"},
		{"multiples of a step", func(y []float64, i int) float64 { return rounded(math.Floor(y[i]/0.0371+0.3) * 0.0371) }, "the result has only multiples of 0.0371: it is quantised"},
		{"multiples of a step a token", func(y []float64, i int) float64 {
			k, _ := at(i)
			step := rounded(0.0371 * own(k))
			return rounded(math.Floor(y[i]/step+0.3) * step)
		}, "each token of the result has only multiples of its own step: 0.04"},
		{"noise", func(y []float64, i int) float64 { return rounded(y[i] * (1 + math.Sin(float64(i*i))/3)) }, "94 of 96 elements of the result differ, with a relative L2 of 0.222"},
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
		said := f.What // a description with all its numbers is a name
		if f.Description != nil {
			said = f.Description.String()
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("%s: %q, want %q", c.name, said, c.want)
		}
	}
}

// matrix is a matrix in memory, row by row.
type matrix [][]float64

func (w matrix) Size() (rows, cols int) { return len(w), len(w[0]) }

func (w matrix) Row(dst []float64, i int) error { copy(dst, w[i]); return nil }

// A product with a matrix that has more rows than columns has an operand that follows from its result: where one gives the result the operand is wrong, and where none does the
// rest is.
func TestDescriptionsOfProducts(t *testing.T) {
	const name, width, rows = "layers.0.mlp.gate_proj", 16, 40
	w := make(matrix, rows)
	for r := range w {
		for c := range width {
			w[r] = append(w[r], float64(float32(math.Sin(float64(17*r*r+5*c*c*r+3*c+1)))))
		}
	}
	product := func(x []float64, w matrix) (y []float64) {
		for at := 0; at < len(x); at += width {
			for _, row := range w {
				sum := 0.0
				for c, v := range row {
					sum += v * x[at+c]
				}
				y = append(y, float64(float32(sum)))
			}
		}
		return y
	}
	for _, c := range []struct {
		name  string
		wrong func(x []float64) []float64
		want  string
	}{
		{"a factor a channel of the operand", func(x []float64) []float64 {
			for i := range x {
				x[i] = float64(float32(x[i] * (1.1 + math.Sin(float64(3*(i%width)))/7)))
			}
			return product(x, w)
		}, "layers.*.post_attention_layernorm is multiplied by a number for each channel: 1.1, "},
		{"another operand", func(x []float64) []float64 {
			for i := range x {
				x[i] = float64(float32(x[i] + math.Sin(float64(i*i))))
			}
			return product(x, w)
		}, "a different layers.*.post_attention_layernorm would give all elements"},
		{"another matrix", func(x []float64) []float64 {
			other := make(matrix, rows)
			for r := range w {
				for k, v := range w[r] {
					other[r] = append(other[r], v+math.Sin(float64(r*r+3*k))/4)
				}
			}
			return product(x, other)
		}, "no operand of the product gives the elements: layers.*.mlp.gate_proj.weight is wrong"},
	} {
		m, e := multiplied(t, name, w, c.wrong)
		f := named(t, m, e)
		said := f.What
		if f.Description != nil {
			said = f.Description.String()
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("%s: %q, want %q", c.name, said, c.want)
		}
	}
}

// multiplied is an entry of qwen3-tiny that is a product with a matrix, whose tensor is what wrong makes of its operand.
func multiplied(t *testing.T, name string, w matrix, wrong func(x []float64) []float64) (*diagnose.Model, *diagnose.Entry) {
	t.Helper()
	m := model(t)
	at := m.List.Index(name)
	entry := &m.List.Entries[at]
	x, err := m.Read(order.Node{Entry: m.List.Index(entry.Inputs[0].Name)})
	if err != nil {
		t.Fatal(err)
	}
	e := &diagnose.Entry{Node: order.Node{Entry: at}, Weights: entry.Weights, Inputs: []order.Node{{Entry: m.List.Index(entry.Inputs[0].Name)}}, Items: []*int{nil}}
	e.Call = program.Call{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: []program.Value{x}, W: []program.Rows{w}, Shape: []int{1, tokens, len(w)}}
	if e.Program, err = program.Of(entry.Op, func(o program.Op) string { return o.Kind() }, 0, e.Call.Shape, [][]int{x.Shape}, [][2]int{{len(w), len(w[0])}}); err != nil {
		t.Fatal(err)
	}
	h := &honest{e: e, y: wrong(slices.Clone(x.Data))}
	e.Judge = h
	right, err := e.Program.Eval(e.Call)
	if err != nil {
		t.Fatal(err)
	}
	e.Left, _ = h.Leaves(right, len(h.y))
	return m, e
}

// Channels of several heads that stand one behind the other are told by head where that says the same by fewer numbers.
func TestDescriptionsByHead(t *testing.T) {
	w := make(matrix, 24)
	for r := range w {
		for c := range 16 {
			w[r] = append(w[r], float64(float32(math.Sin(float64(17*r*r+5*c*c*r+3*c+1)))))
		}
	}
	m, e := multiplied(t, "layers.0.self_attn.q_proj", w, func(x []float64) (y []float64) {
		for at := 0; at < len(x); at += 16 {
			for r, row := range w {
				sum := 0.0
				for c, v := range row {
					sum += v * x[at+c]
				}
				y = append(y, float64(float32(sum*[]float64{1, 1.37}[r/12])))
			}
		}
		return y
	})
	const want = "the result is multiplied by 1.37 at head 1"
	if f := named(t, m, e); f.What != want {
		t.Errorf("%q, %v, want %q", f.What, f.Description, want)
	}
}
