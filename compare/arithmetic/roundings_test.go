package arithmetic_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// roundingPort is a healthy port that rounds where it likes: to the model's dtype, or not, after each inner step of each form
// of operation, the same steps in all entries of the form. Which steps these are is drawn, and so is which forms keep
// their result in float32. What is between the roundings is float32, in an order of summation of its own.
type roundingPort struct {
	testengine.Kernels
	seed  uint64
	share float64 // of the steps at which it rounds
}

// drawRoundingPort takes an arithmetic at random.
func drawRoundingPort(seed uint64, d hooks.DType) *roundingPort {
	rng := rand.New(rand.NewPCG(seed, 31))
	return &roundingPort{testengine.DrawKernels(rng, d), seed, []float64{0.15, 0.5, 0.85}[rng.IntN(3)]}
}

// chance is a number in [0, 1) that a form and a step always have in this port.
func (p *roundingPort) chance(form, step string) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, p.seed, form, "/", step)
	return rand.New(rand.NewPCG(h.Sum64(), 3)).Float64()
}

// steps hands out what the port does to the result of an inner step of a form.
func (p *roundingPort) steps(form string) func(step string) func(float32) float32 {
	return func(step string) func(float32) float32 {
		if p.chance(form, step) < p.share {
			return p.Round
		}
		return func(x float32) float32 { return x }
	}
}

// wideShare is the share of the forms whose results stay float32.
const wideShare = 0.1

// model is the list that the port computes: transformers' with its own operations in place of those that have inner steps.
func (p *roundingPort) model(list *order.List) *order.List {
	var own []*order.Entry
	for i := range list.Entries {
		e := list.Entries[i]
		if arithmetics[e.Op.Kind()] != nil {
			form := op.Form(e.Op)
			if p.chance(form, "wide") < wideShare && e.DType == "" && e.Name != "logits" {
				e.DType = hooks.F32.String()
			}
			e.Op = own32{e.Op, p, form}
		}
		own = append(own, &e)
	}
	return list.Keep(own)
}

// own32 is an operation as the port computes it.
type own32 struct {
	op.Op
	port *roundingPort
	form string
}

// Eval computes in float32; the last rounding is the caller's.
func (o own32) Eval(c program.Call) (program.Value, error) {
	run := call32{Kernels: o.port.Kernels, at: o.port.steps(o.form), shape: c.Shape}
	for _, v := range c.In {
		run.in = append(run.in, singles.Array{Shape: v.Shape, Data: testengine.Narrowed(v.Data)})
	}
	for _, w := range c.W {
		rows, cols := w.Size()
		data := make([]float64, rows*cols)
		for r := range rows {
			if err := w.Row(data[r*cols:][:cols], r); err != nil {
				return program.Value{}, err
			}
		}
		run.w = append(run.w, singles.Array{Shape: []int{rows, cols}, Data: testengine.Narrowed(data)})
	}
	out := program.Value{Shape: c.Shape}
	for _, y := range arithmetics[o.Kind()](run, o.Op) {
		out.Data = append(out.Data, float64(y))
	}
	return out, nil
}

// call32 is one evaluation by the port.
type call32 struct {
	testengine.Kernels
	at    func(step string) func(float32) float32
	in, w []singles.Array
	shape []int
}

// each computes the result element by element.
func (c call32) each(f func(i int) float32) []float32 {
	n, _ := hooks.Elements(c.shape)
	y := make([]float32, n)
	for i := range y {
		y[i] = f(i)
	}
	return y
}

// perRow computes each last axis of the first input by itself.
func (c call32) perRow(f func(x []float32) []float32) []float32 { return singles.Rows(c.in[0], f).Data }

// meanOf is r(Σ) / n of terms that have been rounded.
func (c call32) meanOf(terms []float32) float32 {
	return c.Divide(c.at("sum")(c.Dot(0, terms, nil)), float32(len(terms)))
}

// squares are rounded after they are taken.
func (c call32) squares(x []float32) []float32 {
	r, y := c.at("square"), make([]float32, len(x))
	for i, v := range x {
		y[i] = r(v * v)
	}
	return y
}

// arithmetics are the operations with inner steps, by kind.
var arithmetics = map[string]func(call32, op.Op) []float32{
	"rms_norm": normed, "softmax": softmaxed, "linear": multiplied, "rope": turned, "scores": scored, "context": weighted,
	"altup_predict": predicted, "altup_correct": corrected, "altup_init": initial,
	"mean": func(c call32, _ op.Op) []float32 { return c.perRow(singles.One(c.meanOf)) },
	"std":  func(c call32, _ op.Op) []float32 { return c.perRow(singles.One(c.deviationOf)) },
	"magnitude": func(c call32, o op.Op) []float32 {
		floor := c.Round(float32(o.(op.Magnitude).Floor))
		return c.perRow(singles.One(func(x []float32) float32 {
			return float32(math.Sqrt(float64(max(c.at("mean")(c.meanOf(c.squares(x))), floor))))
		}))
	},
	"rescale": func(c call32, _ op.Op) []float32 {
		n := c.shape[len(c.shape)-1]
		return c.each(func(i int) float32 { return c.rescaled(c.in[0].Data[i], c.in[1].Data[i/n], c.in[2].Data[i/n]) })
	},
	"gelu_tanh": func(c call32, _ op.Op) []float32 { return c.perRow(singles.Each(c.geluTanhOf())) },
	"gelu":      func(c call32, _ op.Op) []float32 { return c.perRow(singles.Each(c.geluOf())) },
	"silu":      func(c call32, _ op.Op) []float32 { return c.perRow(singles.Each(c.siluOf())) },
	"softcap": func(c call32, o op.Op) []float32 {
		limit, quotient, tanh := float32(o.(op.Softcap).Cap), c.at("quotient"), c.at("tanh")
		return c.perRow(singles.Each(func(x float32) float32 { return tanh(c.Function(math.Tanh, quotient(c.Divide(x, limit)))) * limit }))
	},
	"cutoff": func(c call32, o op.Op) []float32 {
		by := c.constant(o.(op.Cutoff).Multiplier)
		product := c.at("product")
		return c.each(func(i int) float32 { return c.in[0].Data[i] + product(c.in[1].Data[i]*by) })
	},
	"add_scale": func(c call32, o op.Op) []float32 {
		scale := o.(op.AddScale)
		by, sum := c.constant(scale.By), c.at("sum")
		return c.each(func(i int) float32 {
			y := sum(c.in[0].Data[i] + c.in[1].Data[i])
			if scale.Divide {
				return y / by
			}
			return y * by
		})
	},
	"stream_mean": func(c call32, _ op.Op) []float32 {
		terms := make([]float32, len(c.in))
		return c.each(func(i int) float32 {
			for k := range terms {
				terms[k] = c.in[k].Data[i]
			}
			return c.meanOf(terms)
		})
	},
}

// constant is part of the model: its rounding is nobody's choice.
func (c call32) constant(k op.Const) float32 {
	if k.Cast {
		return c.Round(float32(k.Value))
	}
	return float32(k.Value)
}

func normed(c call32, o op.Op) []float32 {
	norm := o.(op.RMSNorm)
	mean, eps, inverse, product, gain := c.at("mean"), c.at("eps"), c.at("rsqrt"), c.at("product"), c.at("gain")
	x := singles.Array{Shape: c.shape, Data: c.in[0].Data} // a head is a row, where the input has them side by side
	return singles.Rows(x, func(x []float32) []float32 {
		inv := inverse(float32(1 / math.Sqrt(float64(eps(mean(c.meanOf(c.squares(x)))+float32(norm.Eps))))))
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = product(v * inv)
			switch norm.Gain {
			case op.Plain, op.After:
				y[i] *= c.w[0].Data[i]
			case op.OnePlus:
				y[i] *= gain(1 + c.w[0].Data[i])
			}
		}
		return y
	}).Data
}

func softmaxed(c call32, _ op.Op) []float32 {
	difference, exp, sum := c.at("difference"), c.at("exp"), c.at("sum")
	return c.perRow(func(x []float32) []float32 {
		top, y := slices.Max(x), make([]float32, len(x))
		for i, v := range x {
			y[i] = exp(c.Function(math.Exp, difference(v-top)))
		}
		total := sum(c.Dot(0, y, nil))
		for i := range y {
			y[i] = c.Divide(y[i], total)
		}
		return y
	})
}

func multiplied(c call32, o op.Op) []float32 {
	var bias []float32
	if o.(op.Linear).Bias {
		bias = c.w[1].Data
	}
	if bias == nil || c.BiasFirst {
		return c.perRow(func(x []float32) []float32 { return c.Kernels.Linear(x, c.w[0].Data, bias) })
	}
	product := c.at("product")
	return c.perRow(func(x []float32) []float32 {
		y := c.Kernels.Linear(x, c.w[0].Data, nil)
		for i := range y {
			y[i] = product(y[i]) + bias[i]
		}
		return y
	})
}

func turned(c call32, _ op.Op) []float32 {
	x, cos, sin := c.in[0].Data, c.in[1].Data, c.in[2].Data
	heads, tokens, d := c.shape[1], c.shape[2], c.shape[3]
	byCos, bySin := c.at("cos"), c.at("sin")
	return c.each(func(i int) float32 {
		h, t, j := i/d/tokens, i/d%tokens, i%d
		row := (t*heads + h) * d
		other, sign := j+d/2, float32(-1)
		if j >= d/2 {
			other, sign = j-d/2, 1
		}
		return byCos(x[row+j]*cos[t*d+j]) + bySin(sign*x[row+other]*sin[t*d+j])
	})
}

func scored(c call32, o op.Op) []float32 {
	q, k, scale, product := c.in[0], c.in[1], float32(o.(op.Scores).Scale), c.at("product")
	heads, tokens, keys, d := c.shape[1], c.shape[2], c.shape[3], q.Shape[3]
	group := heads / k.Shape[1]
	return c.each(func(i int) float32 {
		h, t, s := i/keys/tokens, i/keys%tokens, i%keys
		return product(c.Dot(0, q.Data[(h*tokens+t)*d:][:d], k.Data[(h/group*keys+s)*d:][:d])) * scale
	})
}

func weighted(c call32, _ op.Op) []float32 {
	p, v := c.in[0], c.in[1]
	heads, tokens, keys, d := p.Shape[1], p.Shape[2], p.Shape[3], v.Shape[3]
	column := make([]float32, keys)
	return c.each(func(i int) float32 {
		t, h, j := i/d/heads, i/d%heads, i%d
		for s := range keys {
			column[s] = v.Data[(h*v.Shape[1]/heads*keys+s)*d+j]
		}
		return c.Dot(0, p.Data[(h*tokens+t)*keys:][:keys], column)
	})
}

func predicted(c call32, o op.Op) []float32 {
	coefs, x, streams, mixed := c.in[0].Data, c.in[1], o.(op.AltUpPredict).Streams, c.at("mixed")
	size, n := len(x.Data)/streams, x.Shape[3]
	column := make([]float32, streams)
	return c.each(func(i int) float32 {
		to, j := i/size, i%size
		for k := range streams {
			column[k] = x.Data[k*size+j]
		}
		return mixed(c.Dot(0, column, coefs[j/n*streams*streams+to*streams:][:streams])) + x.Data[i]
	})
}

func corrected(c call32, o op.Op) []float32 {
	innovation, coefs, before, streams := c.in[0], c.in[1].Data, c.in[2].Data, o.(op.AltUpCorrect).Streams
	size, n, by, product := len(innovation.Data), innovation.Shape[2], c.at("coefficient"), c.at("product")
	return c.each(func(i int) float32 {
		to, j := i/size, i%size
		return product(innovation.Data[j]*by(coefs[j/n*streams+to]+1)) + before[i]
	})
}

func initial(c call32, _ op.Op) []float32 {
	x, target := c.in[0], c.in[1].Data
	size, n := len(x.Data), x.Shape[2]
	return c.each(func(i int) float32 {
		k, j := i/size, i%size
		if k == 0 {
			return x.Data[j]
		}
		return c.rescaled(c.in[2*k].Data[j], target[j/n], c.in[2*k+1].Data[j/n])
	})
}

func (c call32) rescaled(y, target, own float32) float32 {
	return c.at("product")(y*target) / own
}

func (c call32) deviationOf(x []float32) float32 {
	mean := c.at("mean")(c.meanOf(x))
	difference, square := c.at("difference"), c.at("square")
	y := make([]float32, len(x))
	for i, v := range x {
		d := difference(v - mean)
		y[i] = square(d * d)
	}
	return float32(math.Sqrt(float64(c.at("variance")(c.meanOf(y)))))
}

func (c call32) geluTanhOf() func(float32) float32 {
	square, cube, cubic, sum := c.at("square"), c.at("cube"), c.at("cubic"), c.at("sum")
	inner, tanh, one, half := c.at("inner"), c.at("tanh"), c.at("one"), c.at("half")
	k := float32(math.Sqrt(2 / math.Pi))
	return func(x float32) float32 {
		y := inner(k * sum(x+cubic(0.044715*cube(square(x*x)*x))))
		return half(0.5*x) * one(1+tanh(c.Function(math.Tanh, y)))
	}
}

func (c call32) geluOf() func(float32) float32 {
	inner, erf, one, half := c.at("inner"), c.at("erf"), c.at("one"), c.at("half")
	return func(x float32) float32 {
		return half(0.5*x) * one(1+erf(c.Function(math.Erf, inner(x*float32(math.Sqrt2/2)))))
	}
}

func (c call32) siluOf() func(float32) float32 {
	exp, below, sigmoid := c.at("exp"), c.at("below"), c.at("sigmoid")
	product := c.at("formula")(1.0001) == 1 // as good as any other draw
	return func(x float32) float32 {
		d := below(1 + exp(c.Function(math.Exp, -x)))
		if product { // the other formula
			return x * sigmoid(1/d)
		}
		return x / d
	}
}
