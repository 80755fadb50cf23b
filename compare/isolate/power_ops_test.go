package isolate_test

import (
	"math"

	"github.com/tracediff/tracediff/internal/singles"

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
	singles.Single
	compute func(w []singles.Array) []float32
	heads   int // whose channels lie side by side on the last axis
}

// hidden is a stream.
func (d drawing) hidden(n int) singles.Array { return d.Array("Gaussian", 1, 1, tokens, n) }

// unary is an operation on a stream, row by row.
func (d drawing) unary(o op.Op, x singles.Array, f func(row []float32) []float32) measured {
	out := singles.Rows(x, f)
	return measured{singles.Single{Op: o, In: []singles.Array{x}, Out: out, Letter: "btc"}, func([]singles.Array) []float32 { return out.Data }, 0}
}

// pointwise is an operation on several streams, element by element.
func (d drawing) pointwise(o op.Op, n, inputs int, f func(v []float32) float32) measured {
	var in []singles.Array
	for range inputs {
		in = append(in, d.hidden(n))
	}
	y, v := make([]float32, len(in[0].Data)), make([]float32, inputs)
	for i := range y {
		for k := range v {
			v[k] = in[k].Data[i]
		}
		y[i] = f(v)
	}
	return measured{singles.Single{Op: o, In: in, Out: singles.Array{Shape: in[0].Shape, Data: y}, Letter: "btc"}, func([]singles.Array) []float32 { return y }, 0}
}

func (d drawing) measuredLinear(n, out int, bias bool) measured {
	x := d.hidden(n)
	s := singles.Single{Op: op.Linear{Bias: bias}, In: []singles.Array{x}, W: []singles.Array{d.Array("Gaussian", 1/math.Sqrt(float64(n)), out, n)}, Letter: "btc"}
	if bias {
		s.W = append(s.W, d.Array("Gaussian", 1, out))
	}
	s.Out = singles.Array{Shape: []int{1, tokens, out}, Data: nil}
	return measured{s, func(w []singles.Array) []float32 {
		var b []float32
		if bias {
			b = w[1].Data
		}
		return singles.Rows(x, func(row []float32) []float32 { return d.Kernels.Linear(row, w[0].Data, b) }).Data
	}, 0}
}

func (d drawing) measuredNorm(n int, gain op.Gain) measured {
	x := d.hidden(n)
	s := singles.Single{Op: op.RMSNorm{Eps: 1e-6, Gain: gain}, In: []singles.Array{x}, Out: singles.Array{Shape: x.Shape, Data: nil}, Letter: "btc"}
	if gain != op.NoScale {
		s.W = []singles.Array{d.Array("positive", 1, n)}
	}
	return measured{s, func(w []singles.Array) []float32 {
		var gains []float32
		if gain != op.NoScale {
			gains = w[0].Data
		}
		return singles.Rows(x, func(row []float32) []float32 { return d.Norm(row, gains, 1e-6, string(gain)) }).Data
	}, 0}
}

func (d drawing) measuredChannels(n int) measured {
	x := d.hidden(n)
	s := singles.Single{Op: op.ScaleChannels{}, In: []singles.Array{x}, W: []singles.Array{d.Array("Gaussian", 1, n)}, Out: singles.Array{Shape: x.Shape, Data: nil}, Letter: "btc"}
	return measured{s, func(w []singles.Array) []float32 {
		return singles.Rows(x, func(row []float32) []float32 {
			y := make([]float32, n)
			for i := range y {
				y[i] = row[i] * w[0].Data[i]
			}
			return y
		}).Data
	}, 0}
}

// attention is a query for each head and token, and keys or values that two heads share.
func (d drawing) measuredScores(w width) measured {
	q, k := d.Array("Gaussian", 1, 1, w.heads, tokens, w.head), d.Array("Gaussian", 1, 1, w.kv, tokens, w.head)
	scale := float32(1 / math.Sqrt(float64(w.head)))
	var y []float32
	for h := range w.heads {
		keys := k.Data[h*w.kv/w.heads*tokens*w.head:][:tokens*w.head]
		for t := range tokens {
			for _, v := range d.Kernels.Linear(q.Data[(h*tokens+t)*w.head:][:w.head], keys, nil) {
				y = append(y, d.Round(v)*scale)
			}
		}
	}
	return measured{
		singles.Single{Op: op.Scores{Scale: float64(scale)}, In: []singles.Array{q, k}, Out: singles.Array{Shape: []int{1, w.heads, tokens, tokens}, Data: y}, Letter: "bhts"},
		func([]singles.Array) []float32 { return y }, 0,
	}
}

func (d drawing) measuredSoftmax(w width) measured {
	x := d.Array("Gaussian", 1, 1, w.heads, tokens, tokens)
	m := d.unary(op.Softmax{}, x, d.Softmax)
	m.Wide, m.Letter = true, "bhts"
	return m
}

func (d drawing) measuredContext(w width) measured {
	p := singles.Rows(d.Array("Gaussian", 1, 1, w.heads, tokens, tokens), d.Softmax)
	d.Rounded(p.Data)
	v := d.Array("Gaussian", 1, 1, w.kv, tokens, w.head)
	y := make([]float32, tokens*w.heads*w.head)
	column := make([]float32, tokens)
	for h := range w.heads {
		for j := range w.head {
			for s := range column {
				column[s] = v.Data[(h*w.kv/w.heads*tokens+s)*w.head+j]
			}
			for t := range tokens {
				y[(t*w.heads+h)*w.head+j] = d.Dot(0, p.Data[(h*tokens+t)*tokens:][:tokens], column)
			}
		}
	}
	return measured{
		singles.Single{Op: op.Context{}, In: []singles.Array{p, v}, Out: singles.Array{Shape: []int{1, tokens, w.heads * w.head}, Data: y}, Letter: "btc"},
		func([]singles.Array) []float32 { return y }, w.heads,
	}
}

func (d drawing) measuredRoPE(w width) measured {
	x := d.Array("Gaussian", 1, 1, tokens, w.heads, w.head)
	cos, sin := singles.Array{Shape: []int{1, tokens, w.head}, Data: nil}, singles.Array{Shape: []int{1, tokens, w.head}, Data: nil}
	half := w.head / 2
	for t := range tokens {
		for j := range w.head {
			angle := float64(t) * math.Pow(1e4, -float64(j%half)/float64(half))
			cos.Data, sin.Data = append(cos.Data, float32(math.Cos(angle))), append(sin.Data, float32(math.Sin(angle)))
		}
	}
	d.Rounded(cos.Data)
	d.Rounded(sin.Data)
	var y []float32
	for h := range w.heads {
		for t := range tokens {
			row := x.Data[(t*w.heads+h)*w.head:][:w.head]
			for j, v := range row {
				other := row[(j+half)%w.head]
				if j < half {
					other = -other
				}
				y = append(y, d.Round(v*cos.Data[t*w.head+j])+d.Round(other*sin.Data[t*w.head+j]))
			}
		}
	}
	return measured{
		singles.Single{Op: op.RoPE{}, In: []singles.Array{x, cos, sin}, Out: singles.Array{Shape: []int{1, w.heads, tokens, w.head}, Data: y}, Letter: "bhtc"},
		func([]singles.Array) []float32 { return y }, 0,
	}
}

// measuredRotary is the table of a long prompt: early positions have angles below one.
func (d drawing) measuredRotary(w width) measured {
	positions := singles.Array{Shape: []int{1, tokens}, Data: nil}
	var y []float32
	for t := range tokens {
		positions.Data = append(positions.Data, float32(8*t))
		for j := range w.head {
			half := w.head / 2
			inv := 1 / float32(math.Pow(1e6, float64(float32(j%half)/float32(half))))
			y = append(y, float32(math.Cos(float64(inv*float32(8*t)))))
		}
	}
	return measured{
		singles.Single{Op: op.Rotary{Theta: 1e6, Dim: w.head, Scaling: "default"}, In: []singles.Array{positions}, Out: singles.Array{Shape: []int{1, tokens, w.head}, Data: y}, Letter: "btc"},
		func([]singles.Array) []float32 { return y }, 0,
	}
}
