package testengine

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
)

// Eval computes an operation up to its last rounding. Formulas and names of steps are those of the operations' comments.
func (c Call) Eval() []float64 {
	switch o := c.op.(type) {
	case op.Lookup:
		return lookUp(c, o)
	case op.Identity, op.Cast:
		return slices.Clone(c.In[0].Data)
	case op.Select:
		x, inner := c.In[0], 1
		for _, n := range x.Shape[o.Axis+1:] {
			inner *= n
		}
		return c.each(func(i int) float64 { return x.Data[(i/inner*x.Shape[o.Axis]+o.Index)*inner+i%inner] })
	case op.Cache:
		return c.appended(o)
	case op.Mask:
		return c.mask(o)
	case op.Rotary:
		return c.angles(o)
	case op.Scale:
		by := c.operand(o.By)
		return c.map1(func(x float64) float64 { return c.f(x * by) })
	case op.ScaleChannels:
		return c.each(func(i int) float64 { return c.f(c.In[0].Data[i] * c.W[0].Data[i%len(c.W[0].Data)]) })
	case op.Add:
		return c.each(func(i int) float64 { return c.f(c.In[0].Data[i] + c.In[1].Data[i%len(c.In[1].Data)]) })
	case op.Sub:
		return c.each(func(i int) float64 { return c.f(c.In[0].Data[i] - c.In[1].Data[i]) })
	case op.Mul:
		return c.each(func(i int) float64 { return c.f(c.In[0].Data[i] * c.In[1].Data[i]) })
	case op.AddToOthers:
		x, z := c.In[0].Data, c.In[1].Data
		return c.each(func(i int) float64 {
			if i < len(z) {
				return x[i]
			}
			return c.f(x[i] + z[i%len(z)])
		})
	case op.AddScale:
		return c.addScale(o)
	case op.RMSNorm:
		return c.norm(o)
	case op.Linear:
		return c.multiplied(o)
	case op.RoPE:
		return c.turned()
	case op.Scores:
		return c.scores(o)
	case op.Softmax:
		return perRow(c.In[0].Data, c.In[0].Last(), c.softmax)
	case op.Context:
		return c.context()
	default:
		return c.pointwise()
	}
}

// pointwise has the activations, and eval's statistics of rows.
func (c Call) pointwise() []float64 {
	row := func(f func(x []float64) float64) []float64 {
		return perRow(c.In[0].Data, c.In[0].Last(), func(x []float64) []float64 { return []float64{f(x)} })
	}
	switch o := c.op.(type) {
	case op.GELUTanh:
		if c.table {
			return c.map1(tabled(c.geluTanh()))
		}
		return c.map1(c.geluTanh())
	case op.GELU:
		return c.map1(c.gelu())
	case op.SiLU:
		return c.map1(c.silu())
	case op.Tanh:
		return c.map1(func(x float64) float64 { return c.fn(tanhOf, x) })
	case op.Softcap:
		limit, quotient, tanh := c.number(o.Cap), c.at("quotient"), c.at("tanh")
		return c.map1(func(x float64) float64 { return c.f(tanh(c.fn(tanhOf, quotient(x/limit))) * limit) })
	case op.Mean:
		return row(func(x []float64) float64 { return c.mean(x, true) })
	case op.Std:
		return row(c.deviation)
	case op.Magnitude:
		floor := c.r(float64(float32(o.Floor)))
		return row(func(x []float64) float64 { return c.f(math.Sqrt(max(c.meanSquare(x), floor))) })
	case op.Cutoff:
		by, product := c.operand(o.Multiplier), c.at("product")
		return c.each(func(i int) float64 {
			if c.fused {
				return c.f(c.In[0].Data[i] + c.In[1].Data[i]*by)
			}
			return c.f(c.In[0].Data[i] + product(c.In[1].Data[i]*by))
		})
	case op.ShiftedReLU:
		n := c.In[0].Last()
		return c.each(func(i int) float64 { return max(0, c.f(c.In[0].Data[i]-c.In[1].Data[i/n])) })
	case op.Rescale:
		n := c.In[0].Last()
		return c.each(func(i int) float64 { return c.rescaled(c.In[0].Data[i], c.In[1].Data[i/n], c.In[2].Data[i/n]) })
	case op.StreamMean:
		return c.each(func(i int) float64 {
			var terms []float64
			for _, x := range c.In {
				terms = append(terms, x.Data[i])
			}
			return c.mean(terms, false)
		})
	}
	return c.altUp()
}

func (c Call) altUp() []float64 {
	switch o := c.op.(type) {
	case op.AltUpInit:
		x, target := c.In[0], c.In[1].Data
		size, n := len(x.Data), x.Last()
		return c.each(func(i int) float64 {
			k, j := i/size, i%size
			if k == 0 {
				return x.Data[j]
			}
			return c.rescaled(c.In[2*k].Data[j], target[j/n], c.In[2*k+1].Data[j/n])
		})
	case op.AltUpPredict:
		coefs, x, mixed := c.In[0].Data, c.In[1], c.at("mixed")
		size, n := len(x.Data)/o.Streams, x.Last()
		column := make([]float64, o.Streams)
		return c.each(func(i int) float64 {
			to, j := i/size, i%size
			for k := range column {
				column[k] = x.Data[k*size+j]
			}
			return c.f(mixed(c.total(column, coefs[j/n*o.Streams*o.Streams+to*o.Streams:][:o.Streams])) + x.Data[i])
		})
	case op.AltUpCorrect:
		innovation, coefs, before := c.In[0].Data, c.In[1].Data, c.In[2].Data
		size, n, by, product := len(innovation), c.In[0].Last(), c.at("coefficient"), c.at("product")
		return c.each(func(i int) float64 {
			to, j := i/size, i%size
			factor := by(coefs[j/n*o.Streams+to] + c.slip.offset())
			if c.fused {
				return c.f(innovation[j]*factor + before[i])
			}
			return c.f(product(innovation[j]*factor) + before[i])
		})
	}
	panic(fmt.Sprintf("no formula of %s", c.op.Kind()))
}

func (c Call) addScale(o op.AddScale) []float64 {
	by, sum := c.operand(o.By), c.at("sum")
	if c.inverse && o.Divide {
		by = c.r(c.f(1 / o.By.Value))
	}
	return c.each(func(i int) float64 {
		y := sum(c.In[0].Data[i] + c.In[1].Data[i])
		if o.Divide && !c.inverse {
			return c.f(y / by)
		}
		return c.f(y * by)
	})
}

// rescaled is y·target/own, in this order or by the quotient.
func (c Call) rescaled(y, target, own float64) float64 {
	if c.ratio {
		return c.f(y * c.r(c.f(target/own)))
	}
	return c.f(c.at("product")(y*target) / own)
}

func (c Call) norm(o op.RMSNorm) []float64 {
	eps, root, inverse, product, gain := c.at("eps"), c.at("root"), c.at("rsqrt"), c.at("product"), c.at("gain")
	return perRow(c.In[0].Data, c.Shape[len(c.Shape)-1], func(x []float64) []float64 {
		ms := eps(c.meanSquare(x) + c.number(o.Eps))
		inv := inverse(1 / math.Sqrt(ms))
		if c.root {
			inv = inverse(1 / root(math.Sqrt(ms)))
		}
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = product(v * inv)
			switch o.Gain {
			case op.After:
				y[i] = c.f(c.at("after")(y[i]) * c.W[0].Data[i])
			case op.Plain:
				y[i] = c.f(y[i] * c.W[0].Data[i])
			case op.OnePlus:
				y[i] = c.f(y[i] * gain(1+c.W[0].Data[i]))
			}
		}
		return y
	})
}

func (c Call) softmax(x []float64) []float64 {
	difference, exp, sum := c.at("difference"), c.at("exp"), c.at("sum")
	top, y := slices.Max(x), make([]float64, len(x))
	for i, v := range x {
		y[i] = exp(c.fn(expOf, difference(v-top)))
	}
	total := sum(c.total(y, nil))
	for i := range y {
		y[i] = c.f(y[i] / total)
	}
	return y
}

func (c Call) multiplied(o op.Linear) []float64 {
	product, w, n := c.at("product"), c.W[0].Data, c.W[0].Last()
	return perRow(c.In[0].Data, n, func(x []float64) []float64 {
		y := make([]float64, len(w)/n)
		for k := range y {
			row := w[k*n:][:n]
			switch {
			case !o.Bias:
				y[k] = c.split(x, row)
			case c.fused || c.BiasFirst && c.parts < 2 && !c.double && !c.rounds("linear", "product"):
				y[k] = float64(c.Dot(float32(c.W[1].Data[k]), Narrowed(x), Narrowed(row)))
			default:
				y[k] = c.f(product(c.split(x, row)) + c.W[1].Data[k])
			}
		}
		return y
	})
}

func (c Call) deviation(x []float64) float64 {
	mean := c.mean(x, false)
	difference, square := c.at("difference"), c.at("square")
	y := make([]float64, len(x))
	for i, v := range x {
		d := difference(v - mean)
		y[i] = square(d * d)
	}
	return c.f(math.Sqrt(c.mean(y, false)))
}

func (c Call) geluTanh() func(float64) float64 {
	square, cube, cubic, sum := c.at("square"), c.at("cube"), c.at("cubic"), c.at("sum")
	inner, tanh, one, half := c.at("inner"), c.at("tanh"), c.at("one"), c.at("half")
	k, third := c.own(math.Sqrt(2/math.Pi)), c.own(0.044715)
	return func(x float64) float64 {
		x3 := x * x * x
		if !c.power {
			x3 = square(x*x) * x
		}
		y := third * cube(x3)
		if !c.fused {
			y = cubic(y)
		}
		y = inner(k * sum(x+y))
		return c.f(half(0.5*x) * one(1+tanh(c.fn(tanhOf, y))))
	}
}

// tabled is a GELU that ggml has in a table of float16.
func tabled(f func(float64) float64) func(float64) float64 {
	half := func(x float64) float64 { return float64(floats.RoundF16(float32(x))) }
	return func(x float64) float64 {
		switch {
		case x <= -10:
			return 0
		case x >= 10:
			return x
		}
		return half(f(half(x)))
	}
}

func (c Call) gelu() func(float64) float64 {
	inner, erf, one, half, k := c.at("inner"), c.at("erf"), c.at("one"), c.at("half"), c.own(math.Sqrt2/2)
	return func(x float64) float64 {
		y := x * k
		if c.divides {
			y = x / c.own(math.Sqrt2)
		}
		return c.f(half(0.5*x) * one(1+erf(c.fn(erfOf, inner(y)))))
	}
}

func (c Call) silu() func(float64) float64 {
	exp, below := c.at("exp"), c.at("below")
	return func(x float64) float64 {
		if c.absolute {
			s := c.f(1 / below(1+exp(c.fn(expOf, math.Abs(x)))))
			if x >= 0 {
				s = c.f(1 - s)
			}
			return c.f(x * c.r(s))
		}
		d := below(1 + exp(c.fn(expOf, -x)))
		if c.sigmoid {
			return c.f(x * c.r(c.f(1/d)))
		}
		return c.f(x / d)
	}
}
