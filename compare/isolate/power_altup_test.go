package isolate_test

import (
	"math"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/order/op"
)

// The operations of AltUp's streams.

// streamed is an operation that gives a stack of streams.
func streamed(o op.Op, streams, n int, y []float32, in ...singles.Array) measured {
	out := singles.Array{Shape: []int{streams, 1, tokens, n}, Data: y}
	return measured{singles.Single{Op: o, In: in, Out: out, Letter: "abtc"}, func([]singles.Array) []float32 { return y }, 0}
}

func (d drawing) streams(w width) singles.Array {
	return d.Array("Gaussian", 1, w.stream, 1, tokens, w.hidden)
}

func (d drawing) measuredPredict(w width) measured {
	c, x := d.Array("Gaussian", 0.3, 1, tokens, w.stream*w.stream), d.streams(w)
	size := tokens * w.hidden
	y := make([]float32, len(x.Data))
	values := make([]float32, w.stream)
	for i := range y {
		to, j := i/size, i%size
		for k := range values {
			values[k] = x.Data[k*size+j]
		}
		coefs := c.Data[j/w.hidden*w.stream*w.stream+to*w.stream:][:w.stream]
		y[i] = d.Round(d.Dot(0, values, coefs)) + x.Data[i]
	}
	return streamed(op.AltUpPredict{Streams: w.stream}, w.stream, w.hidden, y, c, x)
}

func (d drawing) measuredCorrect(w width) measured {
	innovation, c, p := d.hidden(w.hidden), d.Array("Gaussian", 0.3, 1, tokens, w.stream), d.streams(w)
	size := tokens * w.hidden
	y := make([]float32, len(p.Data))
	for i := range y {
		to, j := i/size, i%size
		by := d.Round(c.Data[j/w.hidden*w.stream+to] + 1)
		y[i] = d.Round(innovation.Data[j]*by) + p.Data[i]
	}
	return streamed(op.AltUpCorrect{Streams: w.stream}, w.stream, w.hidden, y, innovation, c, p)
}

func (d drawing) measuredOthers(w width) measured {
	x, z := d.streams(w), d.hidden(w.hidden)
	y := append([]float32{}, x.Data...)
	for i := len(z.Data); i < len(y); i++ {
		y[i] += z.Data[i%len(z.Data)]
	}
	return streamed(op.AddToOthers{}, w.stream, w.hidden, y, x, z)
}

// perToken is one positive number for each token.
func (d drawing) perToken() singles.Array {
	return d.Array("positive", 1, 1, tokens, 1)
}

func (d drawing) rescaled(x, target, own singles.Array, n int) []float32 {
	y := make([]float32, len(x.Data))
	for i, v := range x.Data {
		y[i] = d.Divide(d.Round(v*target.Data[i/n]), own.Data[i/n])
	}
	return y
}

func (d drawing) measuredRescale(w width) measured {
	x, target, own := d.hidden(w.hidden), d.perToken(), d.perToken()
	y := d.rescaled(x, target, own, w.hidden)
	return measured{
		singles.Single{Op: op.Rescale{}, In: []singles.Array{x, target, own}, Out: singles.Array{Shape: x.Shape, Data: y}, Letter: "btc"},
		func([]singles.Array) []float32 { return y }, 0,
	}
}

func (d drawing) measuredInit(w width) measured {
	x, target := d.hidden(w.hidden), d.perToken()
	in, y := []singles.Array{x, target}, append([]float32{}, x.Data...)
	for range w.stream - 1 {
		projected, own := d.hidden(w.hidden), d.perToken()
		in, y = append(in, projected, own), append(y, d.rescaled(projected, target, own, w.hidden)...)
	}
	return streamed(op.AltUpInit{}, w.stream, w.hidden, y, in...)
}

// measuredReLU cuts off what is below a cutoff per token.
func (d drawing) measuredReLU(w width) measured {
	x, cutoff := d.hidden(w.wide), d.perToken()
	y := make([]float32, len(x.Data))
	for i, v := range x.Data {
		y[i] = max(0, v-cutoff.Data[i/w.wide])
	}
	return measured{
		singles.Single{Op: op.ShiftedReLU{}, In: []singles.Array{x, cutoff}, Out: singles.Array{Shape: x.Shape, Data: y}, Letter: "btc"},
		func([]singles.Array) []float32 { return y }, 0,
	}
}

// sparsityMultiplier is the 95 % quantile of a normal distribution.
const sparsityMultiplier = 1.6448534

func (d drawing) measuredCutoff() measured {
	by := d.Round(sparsityMultiplier)
	mean, std := d.perToken(), d.perToken()
	y := make([]float32, tokens)
	for i := range y {
		y[i] = mean.Data[i] + d.Round(std.Data[i]*by)
	}
	return measured{
		singles.Single{Op: op.Cutoff{Multiplier: op.Const{Value: sparsityMultiplier, Cast: true}}, In: []singles.Array{mean, std}, Out: singles.Array{Shape: mean.Shape, Data: y}, Letter: "btc"},
		func([]singles.Array) []float32 { return y }, 0,
	}
}

// measuredOps are all operations that compute something, by name, in the order of a forward pass.
func (d drawing) measuredOps(w width) (names []string, all []measured) {
	root2, half := float32(math.Sqrt2), float32(0.5)
	add := func(name string, m measured) { names, all = append(names, name), append(all, m) }
	add("scale", d.unary(op.Scale{By: op.Const{Value: float64(half * 3)}}, d.hidden(w.hidden), singles.Each(func(x float32) float32 { return x * half * 3 })))
	add("rotary", d.measuredRotary(w))
	add("rms_norm plain", d.measuredNorm(w.hidden, op.Plain))
	add("rms_norm none", d.measuredNorm(w.head, op.NoScale))
	add("rms_norm oneplus", d.measuredNorm(w.hidden, op.OnePlus))
	add("rms_norm after", d.measuredNorm(w.hidden, op.After))
	add("linear hidden", d.measuredLinear(w.hidden, w.out, false))
	add("linear wide", d.measuredLinear(w.wide, w.out, false))
	add("linear rank", d.measuredLinear(w.rank, w.out, false))
	add("linear bias", d.measuredLinear(w.hidden, w.out, true))
	add("rope", d.measuredRoPE(w))
	add("scores", d.measuredScores(w))
	add("softcap", d.unary(op.Softcap{Cap: 30}, d.Array("Gaussian", 20, 1, tokens, w.hidden), singles.Each(func(x float32) float32 { return d.Softcap(x, 30) })))
	add("softmax", d.measuredSoftmax(w))
	add("context", d.measuredContext(w))
	add("add", d.pointwise(op.Add{}, w.hidden, 2, func(v []float32) float32 { return v[0] + v[1] }))
	add("sub", d.pointwise(op.Sub{}, w.hidden, 2, func(v []float32) float32 { return v[0] - v[1] }))
	add("add_scale", d.pointwise(op.AddScale{By: op.Const{Value: math.Sqrt2}, Divide: true}, w.hidden, 2, func(v []float32) float32 { return d.Divide(d.Round(v[0]+v[1]), root2) }))
	add("mul", d.pointwise(op.Mul{}, w.wide, 2, func(v []float32) float32 { return v[0] * v[1] }))
	add("gelu_tanh", d.unary(op.GELUTanh{}, d.hidden(w.wide), singles.Each(d.GELUTanh)))
	add("gelu", d.unary(op.GELU{}, d.hidden(w.wide), singles.Each(d.GELU)))
	add("silu", d.unary(op.SiLU{}, d.hidden(w.wide), singles.Each(d.SiLU)))
	add("tanh", d.unary(op.Tanh{}, d.hidden(w.stream), singles.Each(func(x float32) float32 { return d.Function(math.Tanh, x) })))
	add("mean", d.unary(op.Mean{}, d.hidden(w.wide), singles.One(d.Mean)))
	add("std", d.unary(op.Std{}, d.hidden(w.wide), singles.One(d.Deviation)))
	add("cutoff", d.measuredCutoff())
	add("shifted_relu", d.measuredReLU(w))
	add("magnitude", d.unary(op.Magnitude{}, d.hidden(w.hidden), singles.One(d.Magnitude)))
	add("rescale", d.measuredRescale(w))
	add("altup_init", d.measuredInit(w))
	add("altup_predict", d.measuredPredict(w))
	add("altup_correct", d.measuredCorrect(w))
	add("add_to_others", d.measuredOthers(w))
	add("scale_channels", d.measuredChannels(w.hidden))
	add("stream_mean", d.pointwise(op.StreamMean{}, w.hidden, w.stream, func(v []float32) float32 { return d.Mean(v) }))
	add("copies", d.unary(op.Identity{}, d.hidden(w.hidden), singles.Each(func(x float32) float32 { return x })))
	return names, all
}
