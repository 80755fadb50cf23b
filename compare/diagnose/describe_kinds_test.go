package diagnose_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// wave are numbers between −2 and 2, in float32, in no order.
func wave(n, seed int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(float32(2 * math.Sin(float64((i+seed)*(i+seed)*7+3*i+seed))))
	}
	return x
}

// operation is one that an entry of a model is computed by: its place in the order, what it reads, and its result's axes and shape.
type operation struct {
	name   string
	op     program.Op
	axes   string
	shape  []int
	in     []program.Value
	matrix matrix

	configure func(c *order.Config) // nil: the configuration of the fixture
}

// normOf8 is an operation by row of 8 tokens with 16 channels.
func normOf8() operation {
	return operation{"layers.0.input_layernorm", op.RMSNorm{Eps: 1e-6}, "btc", []int{1, 8, 16}, []program.Value{{Shape: []int{1, 8, 16}, Data: wave(128, 1)}}, matrix{wave(16, 5)}, nil}
}

// sumOf8 adds two tensors of 8 tokens with 16 channels.
func sumOf8() operation {
	return operation{"layers.0.attn_residual", op.Add{}, "btc", []int{1, 8, 16}, []program.Value{{Shape: []int{1, 8, 16}, Data: wave(128, 1)}, {Shape: []int{1, 8, 16}, Data: wave(128, 9)}}, nil, nil}
}

// squareOf16 is a product with a square matrix, which no operand is solved from.
func squareOf16() operation {
	o := operation{"layers.0.self_attn.o_proj", op.Linear{}, "btc", []int{1, 8, 16}, []program.Value{{Shape: []int{1, 8, 16}, Data: wave(128, 1)}}, nil, nil}
	for r := range 16 {
		o.matrix = append(o.matrix, wave(16, 31*r+2))
	}
	return o
}

// described is how a tensor is described that wrong makes of what an operation reads and of its right result, each in place.
func (o operation) described(t *testing.T, wrong func(in [][]float64, y []float64)) string {
	t.Helper()
	m := model(t)
	m.Passes = []order.Pass{{Tokens: 8}}
	if o.configure != nil {
		o.configure(m.List.Config)
	}
	d, err := diagnose.Described(m, o.made(t, m, wrong))
	if err != nil {
		t.Fatal(err)
	}
	if d == nil {
		return ""
	}
	return d.String()
}

// made is the entry of an operation with such a tensor.
func (o operation) made(t *testing.T, m *diagnose.Model, wrong func(in [][]float64, y []float64)) *diagnose.Entry {
	t.Helper()
	at := m.List.Index(o.name)
	entry := &m.List.Entries[at]
	entry.Op, entry.Axes, entry.Inputs = o.op, o.axes, entry.Inputs[:min(len(entry.Inputs), len(o.in))]
	e := &diagnose.Entry{Node: order.Node{Entry: at}}
	e.Call = program.Call{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: o.in, Shape: o.shape}
	var shapes [][]int
	var sizes [][2]int
	var in [][]float64
	for k, v := range o.in {
		e.Inputs, e.Items = append(e.Inputs, order.Node{Entry: m.List.Index(entry.Inputs[min(k, len(entry.Inputs)-1)].Name)}), append(e.Items, nil)
		shapes, in = append(shapes, v.Shape), append(in, v.Data)
	}
	if entry.Weights = nil; o.matrix != nil {
		sizes, e.Call.W = append(sizes, [2]int{len(o.matrix), len(o.matrix[0])}), []program.Rows{o.matrix}
		entry.Weights = []order.Weight{{Name: o.name + ".weight", Shape: []int{len(o.matrix), len(o.matrix[0])}}}
		if len(o.matrix) == 1 {
			sizes[0], entry.Weights[0].Shape = [2]int{1, len(o.matrix[0])}, []int{len(o.matrix[0])}
		}
		e.Weights = entry.Weights
	}
	var err error
	if e.Program, err = program.Of(o.op, func(o program.Op) string { return o.Kind() }, 0, o.shape, shapes, sizes); err != nil {
		t.Fatal(err)
	}
	right, err := e.Program.Eval(e.Call)
	if err != nil {
		t.Fatal(err)
	}
	h := &honest{e: e, y: slices.Clone(right.Data)}
	wrong(in, h.y)
	for i, x := range h.y {
		h.y[i] = float64(float32(x))
	}
	e.Judge = h
	e.Left, _ = h.Leaves(right, len(h.y))
	return e
}

// noisy changes elements in no way that has a description.
func noisy(_ [][]float64, y []float64) {
	for i := range y {
		y[i] *= 1 + math.Sin(float64(i*i+1))/3
	}
}

// Planted tensors are described by how they were planted, and noise is not described so.
func TestKindsOfDescriptions(t *testing.T) {
	channel := func(i int) int { return i % 16 }
	for _, c := range []struct {
		name  string
		of    operation
		wrong func(in [][]float64, y []float64)
		want  string
	}{
		{"rows", normOf8(), func(_ [][]float64, y []float64) { copy(y[2*16:4*16], y[5*16:7*16]) }, "2 of 2 wrong rows of the result are other rows: token 2 is token 5 of the right result; token 3 is token 6 of the right result"},
		{"a row of zeros", normOf8(), func(_ [][]float64, y []float64) { clear(y[16:32]) }, "1 of 1 wrong rows of the result are other rows: token 1 is 0"},
		{"channels", normOf8(), func(_ [][]float64, y []float64) {
			for row := 0; row < len(y); row += 16 {
				slices.Reverse(y[row : row+4])
			}
		}, "4 of 4 wrong channels of the result are other channels of the right result: channel 0 is 3; channel 1 is 2; channel 2 is 1; channel 3 is 0"},
		{"slope", normOf8(), func(_ [][]float64, y []float64) {
			for i := range y {
				y[i] += 0.125*float64(i/16) + math.Sin(float64(3*channel(i)))
			}
		}, "a bias is added to the result that grows by 0.125 with each token"},
		{"sums of channels", normOf8(), func(_ [][]float64, y []float64) {
			for row := 0; row < len(y); row += 16 {
				y[row+2] += y[row+3]
				y[row+5] = -2 * y[row+4]
			}
		}, ""}, // 8 rows tell no 16 coefficients
		{"a number of each row", plainNorm(), normBy(func(_ float64, row []float64) float64 { return meanPower(row, 1) }), "epsilon would have to be the mean magnitude of each row of layers.*.in"},
		{"few bits", normOf8(), func(_ [][]float64, y []float64) {
			for i, x := range y {
				f, e := math.Frexp(x)
				y[i] = math.Ldexp(math.RoundToEven(f*64)/64, e)
			}
		}, "the wrong elements of the result have at most 6 significant bits"},
		{"where", normOf8(), func(_ [][]float64, y []float64) { noisy(nil, y[48:80]) }, "32 of 128 elements of the result differ, with a relative L2 of 0.1"},
		{"a formula", sumOf8(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = math.Tanh(in[0][i]) * in[1][i]
			}
		}, "the result would have to be the tanh of "},
		{"a function of what is added", sumOf8(), func(in [][]float64, y []float64) {
			for i := range y {
				y[i] += math.Exp(in[1][i]/2) * in[1][i] / (1 + in[1][i]*in[1][i])
			}
		}, "a function of layers.*.self_attn.o_proj is added to the result"},
		{"rank", squareOf16(), func(in [][]float64, y []float64) {
			for i := range y {
				for r := range 2 {
					s := 0.0
					for c := range 16 {
						s += in[0][i/16*16+c] * math.Sin(float64(c*c+5*r))
					}
					y[i] += s * math.Cos(float64(channel(i)*3+r))
				}
			}
		}, "a product of two matrices of rank 2 is added to the result"},
		{"factors of inputs", squareOf16(), func(in [][]float64, y []float64) {
			w := squareOf16().matrix
			for i := range y {
				y[i] = 0
				for c := range 16 {
					y[i] += w[channel(i)][c] * in[0][i/16*16+c] * []float64{2, 1, 0.5}[c%3]
				}
			}
		}, "each input of layers.*.self_attn.o_proj.weight has its own factor, the same for all outputs: 2, 0.5, 2, 0.5, 2, 0.5, ..."},
		{"factors of blocks", squareOf16(), func(in [][]float64, y []float64) {
			w := squareOf16().matrix
			for i := range y {
				y[i] = 0
				for c := range 16 {
					y[i] += w[channel(i)][c] * in[0][i/16*16+c] * [][]float64{{1.5, 0.75}, {2, 1}}[channel(i)/8][c/8]
				}
			}
		}, "layers.*.self_attn.o_proj.weight has its own factor for each block of 8 by 8: 1.5, 0.75, 2"},
	} {
		got := c.of.described(t, c.wrong)
		if c.want == "" && strings.Contains(got, "is made of") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := c.of.described(t, noisy); !strings.HasPrefix(got, "128 of 128 elements") && !strings.HasPrefix(got, "127 of 128 elements") {
			t.Errorf("%s: noise is described: %q", c.name, got)
		}
	}
}
