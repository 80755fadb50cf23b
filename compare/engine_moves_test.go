package compare_test

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/op"
)

// Tables, copies and products of attention, as an engine has them.

func (c calc) lookUp(o op.Lookup) []float64 {
	table, n := c.w[0].data, c.w[0].last()
	var y []float64
	for _, id := range c.in[0].data {
		if id >= float64(o.Rows) { // only with Fallback: other ids are never drawn
			id = 0
		}
		y = append(y, table[int(id)*n:][:n]...)
	}
	return y
}

// appended is the cache after this pass.
func (c calc) appended(o op.Cache) []float64 {
	now := c.in[0].data
	heads, keys, d := c.shape[1], c.shape[2], c.shape[3]
	tokens := len(now) / heads / d
	return c.each(func(i int) float64 {
		h, t, j := i/d/keys, i/d%keys-(keys-tokens), i%d
		if t < 0 { // negative from the end of what was there
			before := c.in[1].data
			n := len(before) / heads / d
			return before[(h*n+n+t)*d+j]
		}
		if o.Transpose {
			return now[(t*heads+h)*d+j]
		}
		return now[(h*tokens+t)*d+j]
	})
}

func (c calc) mask(o op.Mask) []float64 {
	positions, keys := c.in[0].data, c.shape[len(c.shape)-1]
	last := positions[len(positions)-1]
	return c.each(func(i int) float64 {
		q, k := positions[i/keys], last+1-float64(keys)+float64(i%keys)
		if k <= q+c.slip.ahead && (o.Window == 0 || k > q-float64(o.Window)) {
			return 0
		}
		return lowest(c.dtype)
	})
}

// angles is a rotary table, which every engine computes in float32.
func (c calc) angles(o op.Rotary) []float64 {
	f := func(x float64) float64 { return float64(float32(x)) }
	function, half := cosOf, o.Dim/2
	if o.Sin {
		function = sinOf
	}
	if c.turner != nil {
		return c.turnedBy(o, function)
	}
	return c.each(func(i int) float64 {
		inv := f(1 / f(math.Pow(f(o.Theta), f(float64(2*(i%half))/float64(o.Dim)))))
		switch o.Scaling {
		case "linear":
			inv = f(inv / f(o.Factor))
		case "llama3":
			inv = scaledFrequency(o, inv)
		}
		return f(function.of(f(inv * f(c.in[0].data[i/o.Dim]))))
	})
}

// turnedBy is angles by another way of making tables, with another library.
func (c calc) turnedBy(o op.Rotary, f function) []float64 {
	r := rope{theta: o.Theta, dim: o.Dim}
	switch o.Scaling {
	case "linear":
		r.scaling = linearOf(o.Factor)
	case "llama3":
		r.scaling = llama3Of(o.Factor, o.LowFreq, o.HighFreq, float64(o.Positions))
	}
	var l library
	if c.other != nil {
		l = *c.other
	}
	var y []float64
	for _, p := range c.in[0].data {
		row := c.turner.angles(l, r, p)
		for i, angle := range row {
			row[i] = l.of(f.units, f.of, angle)
		}
		y = append(append(y, row...), row...)
	}
	return y
}

// scaledFrequency is llama3's: by wavelength kept, divided, or a mixture of both.
func scaledFrequency(o op.Rotary, inv float64) float64 {
	f := func(x float64) float64 { return float64(float32(x)) }
	n := float64(o.Positions)
	switch wave := f(f(1/inv) * f(2*math.Pi)); {
	case wave > f(n/o.LowFreq):
		return f(inv / f(o.Factor))
	case wave >= f(n/o.HighFreq):
		smooth := f(f(f(f(1/wave)*f(n))-f(o.LowFreq)) / f(o.HighFreq-o.LowFreq))
		return f(f(f(f(1-smooth)*inv)/f(o.Factor)) + f(smooth*inv))
	}
	return inv
}

func (c calc) turned() []float64 {
	x, cos, sin := c.in[0].data, c.in[1].data, c.in[2].data
	heads, tokens, d := c.shape[1], c.shape[2], c.shape[3]
	byCos, bySin := c.at("cos"), c.at("sin")
	return c.each(func(i int) float64 {
		h, t, j := i/d/tokens, i/d%tokens, i%d
		row, other, sign := (t*heads+h)*d, (j+d/2)%d, 1.0
		if j < d/2 {
			sign = -1
		}
		at := j
		if c.slip.interleaved { // pairs lie side by side
			other, sign, at = j^1, 2*float64(j%2)-1, j/2
		}
		if c.fused {
			return c.f(x[row+j]*cos[t*d+at] + c.f(sign*x[row+other]*sin[t*d+at]))
		}
		return c.f(byCos(x[row+j]*cos[t*d+at]) + bySin(sign*x[row+other]*sin[t*d+at]))
	})
}

func (c calc) scores(o op.Scores) []float64 {
	q, k, scale, product := c.in[0], c.in[1], c.number(o.Scale), c.at("product")
	heads, tokens, keys, d := c.shape[1], c.shape[2], c.shape[3], q.last()
	group := heads / k.shape[1]
	if c.queries {
		q = dense{q.shape, slices.Clone(q.data)}
		for i, x := range q.data {
			q.data[i] = c.r(c.f(x * c.r(scale)))
		}
		scale = 1
	}
	return c.each(func(i int) float64 {
		h, t, s := i/keys/tokens, i/keys%tokens, i%keys
		of := h / group
		if c.slip.tiled {
			of = h % k.shape[1]
		}
		return c.f(product(c.total(q.data[(h*tokens+t)*d:][:d], k.data[(of*keys+s)*d:][:d])) * scale)
	})
}

func (c calc) context() []float64 {
	p, v := c.in[0], c.in[1]
	heads, tokens, keys, d := p.shape[1], p.shape[2], p.shape[3], v.last()
	column := make([]float64, keys)
	return c.each(func(i int) float64 {
		t, h, j := i/d/heads, i/d%heads, i%d
		if c.slip.unmerged { // the result is read as if channels stood before heads
			h, j = i%(heads*d)%heads, i%(heads*d)/heads
		}
		for s := range keys {
			column[s] = v.data[(h*v.shape[1]/heads*keys+s)*d+j]
		}
		return c.split(p.data[(h*tokens+t)*keys:][:keys], column)
	})
}
