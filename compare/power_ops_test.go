package compare_test

import (
	"math"

	"github.com/tracediff/tracediff/order/op"
)

// width is a model's sizes.
type width struct {
	name                                             string
	hidden, wide, rank, out, heads, kv, head, stream int
}

// tokens of every measured tensor, also the keys of attention.
const tokens = 16

// The widths: out is how many rows of a weight are computed, a sample of them at E2B.
var (
	tinyWidth = width{"tiny", 32, 64, 4, 32, 4, 2, 8, 4}
	e2bWidth  = width{"E2B", 2048, 8192, 64, 64, 8, 2, 256, 4}
)

// measured is an operation whose power is measured: one with drawn inputs, and what an engine computes, before its last
// rounding, with weights of which nobody says that they are the operation's.
type measured struct {
	single
	compute func(w []array) []float32
	heads   int // whose channels lie side by side on the last axis
}

// hidden is a stream.
func (d drawing) hidden(n int) array { return d.array("Gaussian", 1, 1, tokens, n) }

// unary is an operation on a stream, row by row.
func (d drawing) unary(o op.Op, x array, f func(row []float32) []float32) measured {
	out := rows(x, f)
	return measured{single{op: o, in: []array{x}, out: out, letter: "btc"}, func([]array) []float32 { return out.data }, 0}
}

// pointwise is an operation on several streams, element by element.
func (d drawing) pointwise(o op.Op, n, inputs int, f func(v []float32) float32) measured {
	var in []array
	for range inputs {
		in = append(in, d.hidden(n))
	}
	y, v := make([]float32, len(in[0].data)), make([]float32, inputs)
	for i := range y {
		for k := range v {
			v[k] = in[k].data[i]
		}
		y[i] = f(v)
	}
	return measured{single{op: o, in: in, out: array{in[0].shape, y}, letter: "btc"}, func([]array) []float32 { return y }, 0}
}

func (d drawing) measuredLinear(n, out int, bias bool) measured {
	x := d.hidden(n)
	s := single{op: op.Linear{Bias: bias}, in: []array{x}, w: []array{d.array("Gaussian", 1/math.Sqrt(float64(n)), out, n)}, letter: "btc"}
	if bias {
		s.w = append(s.w, d.array("Gaussian", 1, out))
	}
	s.out = array{[]int{1, tokens, out}, nil}
	return measured{s, func(w []array) []float32 {
		var b []float32
		if bias {
			b = w[1].data
		}
		return rows(x, func(row []float32) []float32 { return d.Kernels.Linear(row, w[0].data, b) }).data
	}, 0}
}

func (d drawing) measuredNorm(n int, gain op.Gain) measured {
	x := d.hidden(n)
	s := single{op: op.RMSNorm{Eps: 1e-6, Gain: gain}, in: []array{x}, out: array{x.shape, nil}, letter: "btc"}
	if gain != op.NoScale {
		s.w = []array{d.array("positive", 1, n)}
	}
	return measured{s, func(w []array) []float32 {
		var gains []float32
		if gain != op.NoScale {
			gains = w[0].data
		}
		return rows(x, func(row []float32) []float32 { return d.Norm(row, gains, 1e-6, string(gain)) }).data
	}, 0}
}

func (d drawing) measuredChannels(n int) measured {
	x := d.hidden(n)
	s := single{op: op.ScaleChannels{}, in: []array{x}, w: []array{d.array("Gaussian", 1, n)}, out: array{x.shape, nil}, letter: "btc"}
	return measured{s, func(w []array) []float32 {
		return rows(x, func(row []float32) []float32 {
			y := make([]float32, n)
			for i := range y {
				y[i] = row[i] * w[0].data[i]
			}
			return y
		}).data
	}, 0}
}

// attention is a query for each head and token, and keys or values that two heads share.
func (d drawing) measuredScores(w width) measured {
	q, k := d.array("Gaussian", 1, 1, w.heads, tokens, w.head), d.array("Gaussian", 1, 1, w.kv, tokens, w.head)
	scale := float32(1 / math.Sqrt(float64(w.head)))
	var y []float32
	for h := range w.heads {
		keys := k.data[h*w.kv/w.heads*tokens*w.head:][:tokens*w.head]
		for t := range tokens {
			for _, v := range d.Kernels.Linear(q.data[(h*tokens+t)*w.head:][:w.head], keys, nil) {
				y = append(y, d.Round(v)*scale)
			}
		}
	}
	return measured{
		single{op: op.Scores{Scale: float64(scale)}, in: []array{q, k}, out: array{[]int{1, w.heads, tokens, tokens}, y}, letter: "bhts"},
		func([]array) []float32 { return y }, 0,
	}
}

func (d drawing) measuredSoftmax(w width) measured {
	x := d.array("Gaussian", 1, 1, w.heads, tokens, tokens)
	m := d.unary(op.Softmax{}, x, d.Softmax)
	m.wide, m.letter = true, "bhts"
	return m
}

func (d drawing) measuredContext(w width) measured {
	p := rows(d.array("Gaussian", 1, 1, w.heads, tokens, tokens), d.Softmax)
	d.Rounded(p.data)
	v := d.array("Gaussian", 1, 1, w.kv, tokens, w.head)
	y := make([]float32, tokens*w.heads*w.head)
	column := make([]float32, tokens)
	for h := range w.heads {
		for j := range w.head {
			for s := range column {
				column[s] = v.data[(h*w.kv/w.heads*tokens+s)*w.head+j]
			}
			for t := range tokens {
				y[(t*w.heads+h)*w.head+j] = d.Dot(0, p.data[(h*tokens+t)*tokens:][:tokens], column)
			}
		}
	}
	return measured{
		single{op: op.Context{}, in: []array{p, v}, out: array{[]int{1, tokens, w.heads * w.head}, y}, letter: "btc"},
		func([]array) []float32 { return y }, w.heads,
	}
}

func (d drawing) measuredRoPE(w width) measured {
	x := d.array("Gaussian", 1, 1, tokens, w.heads, w.head)
	cos, sin := array{[]int{1, tokens, w.head}, nil}, array{[]int{1, tokens, w.head}, nil}
	half := w.head / 2
	for t := range tokens {
		for j := range w.head {
			angle := float64(t) * math.Pow(1e4, -float64(j%half)/float64(half))
			cos.data, sin.data = append(cos.data, float32(math.Cos(angle))), append(sin.data, float32(math.Sin(angle)))
		}
	}
	d.Rounded(cos.data)
	d.Rounded(sin.data)
	var y []float32
	for h := range w.heads {
		for t := range tokens {
			row := x.data[(t*w.heads+h)*w.head:][:w.head]
			for j, v := range row {
				other := row[(j+half)%w.head]
				if j < half {
					other = -other
				}
				y = append(y, d.Round(v*cos.data[t*w.head+j])+d.Round(other*sin.data[t*w.head+j]))
			}
		}
	}
	return measured{
		single{op: op.RoPE{}, in: []array{x, cos, sin}, out: array{[]int{1, w.heads, tokens, w.head}, y}, letter: "bhtc"},
		func([]array) []float32 { return y }, 0,
	}
}

// measuredRotary is the table of a long prompt: early positions have angles below one.
func (d drawing) measuredRotary(w width) measured {
	positions := array{[]int{1, tokens}, nil}
	var y []float32
	for t := range tokens {
		positions.data = append(positions.data, float32(8*t))
		for j := range w.head {
			half := w.head / 2
			inv := 1 / float32(math.Pow(1e6, float64(float32(j%half)/float32(half))))
			y = append(y, float32(math.Cos(float64(inv*float32(8*t)))))
		}
	}
	return measured{
		single{op: op.Rotary{Theta: 1e6, Dim: w.head, Scaling: "default"}, in: []array{positions}, out: array{[]int{1, tokens, w.head}, y}, letter: "btc"},
		func([]array) []float32 { return y }, 0,
	}
}
