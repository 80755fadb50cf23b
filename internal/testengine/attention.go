package testengine

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/op"
)

// Tables, copies and products of attention, as an engine has them.

func lookUp(c Call, o op.Lookup) []float64 {
	table, n := c.W[0].Data, c.W[0].Last()
	var y []float64
	for _, id := range c.In[0].Data {
		if id >= float64(o.Rows) { // only with Fallback: other ids are never drawn
			id = 0
		}
		y = append(y, table[int(id)*n:][:n]...)
	}
	return y
}

// appended is the cache after this pass.
func (c Call) appended(o op.Cache) []float64 {
	now := c.In[0].Data
	heads, keys, d := c.Shape[1], c.Shape[2], c.Shape[3]
	tokens := len(now) / heads / d
	return c.each(func(i int) float64 {
		h, t, j := i/d/keys, i/d%keys-(keys-tokens), i%d
		if t < 0 { // negative from the end of what was there
			before := c.In[1].Data
			n := len(before) / heads / d
			return before[(h*n+n+t)*d+j]
		}
		if o.Transpose {
			return now[(t*heads+h)*d+j]
		}
		return now[(h*tokens+t)*d+j]
	})
}

func (c Call) mask(o op.Mask) []float64 {
	positions, keys := c.In[0].Data, c.Shape[len(c.Shape)-1]
	last := positions[len(positions)-1]
	return c.each(func(i int) float64 {
		q, k := positions[i/keys], last+1-float64(keys)+float64(i%keys)
		if k <= q+c.slip.ahead && (o.Window == 0 || k > q-float64(o.Window)) {
			return 0
		}
		return Lowest(c.DType)
	})
}

// angles is a rotary table, which every engine computes in float32.
func (c Call) angles(o op.Rotary) []float64 {
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
		return f(function.of(f(inv * f(c.In[0].Data[i/o.Dim]))))
	})
}

// turnedBy is angles by another way of making tables, with another library.
func (c Call) turnedBy(o op.Rotary, f function) []float64 {
	r := Rope{Theta: o.Theta, Dim: o.Dim}
	switch o.Scaling {
	case "linear":
		r.Scaling = LinearScaling(o.Factor)
	case "llama3":
		r.Scaling = Llama3Scaling(o.Factor, o.LowFreq, o.HighFreq, float64(o.Positions))
	}
	var l Library
	if c.other != nil {
		l = *c.other
	}
	var y []float64
	for _, p := range c.In[0].Data {
		row := c.turner.Angles(l, r, p)
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

func (c Call) turned() []float64 {
	x, cos, sin := c.In[0].Data, c.In[1].Data, c.In[2].Data
	heads, tokens, d := c.Shape[1], c.Shape[2], c.Shape[3]
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

func (c Call) scores(o op.Scores) []float64 {
	q, k, scale, product := c.In[0], c.In[1], c.number(o.Scale), c.at("product")
	heads, tokens, keys, d := c.Shape[1], c.Shape[2], c.Shape[3], q.Last()
	group := heads / k.Shape[1]
	if c.queries {
		q = Tensor{q.Shape, slices.Clone(q.Data)}
		for i, x := range q.Data {
			q.Data[i] = c.r(c.f(x * c.r(scale)))
		}
		scale = 1
	}
	return c.each(func(i int) float64 {
		h, t, s := i/keys/tokens, i/keys%tokens, i%keys
		of := h / group
		if c.slip.tiled {
			of = h % k.Shape[1]
		}
		return c.f(product(c.total(q.Data[(h*tokens+t)*d:][:d], k.Data[(of*keys+s)*d:][:d])) * scale)
	})
}

func (c Call) context() []float64 {
	p, v := c.In[0], c.In[1]
	heads, tokens, keys, d := p.Shape[1], p.Shape[2], p.Shape[3], v.Last()
	column := make([]float64, keys)
	return c.each(func(i int) float64 {
		t, h, j := i/d/heads, i/d%heads, i%d
		if c.slip.unmerged { // the result is read as if channels stood before heads
			h, j = i%(heads*d)%heads, i%(heads*d)/heads
		}
		for s := range keys {
			column[s] = v.Data[(h*v.Shape[1]/heads*keys+s)*d+j]
		}
		return c.split(p.Data[(h*tokens+t)*keys:][:keys], column)
	})
}
