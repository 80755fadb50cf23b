package compare_test

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// slip are mistakes inside a formula.
type slip struct {
	fewer       int     // a mean divides by so many less
	lost        float64 // of the 1 that is added to a coefficient
	ahead       float64 // a query sees so many keys after it
	interleaved bool    // pairs of the rotation lie side by side
	tiled       bool    // query head h reads key head h mod their number
	unmerged    bool    // heads are not put beside each other
}

func (s slip) offset() float64 { return 1 - s.lost }

// damage is a mistake at some entries.
type damage struct {
	mistake mistake
	at      map[string]bool
}

// mistake is one that ports make: in the constants, the weights or the formula of an operation, computed with the engine's own
// roundings, or in its result.
type mistake struct {
	name    string
	fits    func(e *order.Entry) bool // the operation can have it
	compute func(c calc) []float64
}

// mistakesOf has them all.
var mistakesOf = slices.Concat(normMistakes, activationMistakes, attentionMistakes, linearMistakes, streamMistakes, resultMistakes)

// kindOf is a fits that wants an operation of a type for which also holds.
func kindOf[O op.Op](also func(o O) bool) func(e *order.Entry) bool {
	return func(e *order.Entry) bool {
		o, ok := e.Op.(O)
		return ok && (also == nil || also(o))
	}
}

// another computes another operation in place of one.
func another[O op.Op](instead func(o O, c *calc) op.Op) func(c calc) []float64 {
	return func(c calc) []float64 {
		c.op = instead(c.op.(O), &c)
		return c.eval()
	}
}

// slipped computes with a mistake inside the formula.
func slipped(s slip) func(c calc) []float64 {
	return func(c calc) []float64 {
		c.slip = s
		return c.eval()
	}
}

// after changes the result.
func after(f func(c calc, y []float64)) func(c calc) []float64 {
	return func(c calc) []float64 {
		y := c.eval()
		f(c, y)
		return y
	}
}

// weight changes a copy of weight k.
func weight(k int, f func(w dense)) func(c calc) []float64 {
	return func(c calc) []float64 {
		c.w = slices.Clone(c.w)
		c.w[k].data = slices.Clone(c.w[k].data)
		f(c.w[k])
		return c.eval()
	}
}

func hasGain(gains ...op.Gain) func(e *order.Entry) bool {
	return kindOf(func(o op.RMSNorm) bool { return slices.Contains(gains, o.Gain) })
}

func regain(g op.Gain) func(c calc) []float64 {
	return another(func(o op.RMSNorm, _ *calc) op.Op { return op.RMSNorm{Eps: o.Eps, Gain: g} })
}

var normMistakes = []mistake{
	{"epsilon too large", kindOf[op.RMSNorm](nil), another(func(o op.RMSNorm, _ *calc) op.Op {
		eps := 1e-3
		if o.Eps >= eps {
			eps = 0.1
		}
		return op.RMSNorm{Eps: eps, Gain: o.Gain}
	})},
	{"w for 1 + w", hasGain(op.OnePlus), regain(op.Plain)},
	{"1 + w for w", hasGain(op.Plain, op.After), weight(0, func(w dense) {
		for i := range w.data {
			w.data[i]++
		}
	})},
	{"no weight", hasGain(op.OnePlus, op.Plain, op.After), regain(op.NoScale)},
	{"n - 1", func(e *order.Entry) bool {
		switch e.Op.(type) {
		case op.RMSNorm, op.Mean, op.Std, op.Magnitude:
			return true
		}
		return false
	}, slipped(slip{fewer: 1})},
	{"mean taken off", kindOf[op.RMSNorm](nil), func(c calc) []float64 {
		n := c.shape[len(c.shape)-1]
		c.in = []dense{{c.in[0].shape, perRow(c.in[0].data, n, func(x []float64) []float64 {
			mean, y := c.f(c.total(x, nil)/float64(len(x))), slices.Clone(x)
			for i := range y {
				y[i] = c.f(y[i] - mean)
			}
			return y
		})}}
		return c.eval()
	}},
}

var activationMistakes = []mistake{
	{"erf for tanh", kindOf[op.GELUTanh](nil), another(func(op.GELUTanh, *calc) op.Op { return op.GELU{} })},
	{"tanh for erf", kindOf[op.GELU](nil), another(func(op.GELU, *calc) op.Op { return op.GELUTanh{} })},
	{"SiLU for GELU", kindOf[op.GELUTanh](nil), another(func(op.GELUTanh, *calc) op.Op { return op.SiLU{} })},
	{"GELU for SiLU", kindOf[op.SiLU](nil), another(func(op.SiLU, *calc) op.Op { return op.GELUTanh{} })},
	{"no soft cap", kindOf[op.Softcap](nil), another(func(op.Softcap, *calc) op.Op { return op.Identity{} })},
	{"hard threshold", kindOf[op.ShiftedReLU](nil), after(func(c calc, y []float64) {
		for i := range y {
			if y[i] > 0 {
				y[i] = c.in[0].data[i]
			}
		}
	})},
	{"deviation taken off", kindOf[op.Cutoff](nil), another(func(o op.Cutoff, _ *calc) op.Op {
		o.Multiplier.Value = -o.Multiplier.Value
		return o
	})},
	{"no tanh", kindOf[op.Tanh](nil), another(func(op.Tanh, *calc) op.Op { return op.Identity{} })},
	{"one factor missing", kindOf[op.Mul](nil), func(c calc) []float64 { return slices.Clone(c.in[0].data) }},
}

var attentionMistakes = []mistake{
	{"scaled by another size", kindOf[op.Scores](nil), another(func(o op.Scores, c *calc) op.Op {
		width := float64(c.in[0].shape[1] * c.in[0].last())
		return op.Scores{Scale: 1 / math.Sqrt(2*width)}
	})},
	{"scaled twice", kindOf(func(o op.Scores) bool { return o.Scale != 1 }), another(func(o op.Scores, _ *calc) op.Op { return op.Scores{Scale: o.Scale * o.Scale} })},
	{"heads read tiled", kindOf[op.Scores](nil), slipped(slip{tiled: true})},
	{"cos for sin", kindOf[op.RoPE](nil), another(func(o op.RoPE, c *calc) op.Op {
		c.in = []dense{c.in[0], c.in[2], c.in[1]}
		return o
	})},
	{"interleaved pairs", kindOf[op.RoPE](nil), slipped(slip{interleaved: true})},
	{"another theta", kindOf[op.Rotary](nil), another(func(o op.Rotary, _ *calc) op.Op { o.Theta *= 8; return o })},
	{"one key too many", kindOf[op.Mask](nil), slipped(slip{ahead: 1})},
	{"window too wide", kindOf(func(o op.Mask) bool { return o.Window > 0 }), another(func(o op.Mask, _ *calc) op.Op { o.Window++; return o })},
	{"heads not merged", kindOf[op.Context](nil), slipped(slip{unmerged: true})},
	{"values one key off", kindOf[op.Context](nil), func(c calc) []float64 {
		v := dense{c.in[1].shape, slices.Clone(c.in[1].data)}
		block := v.shape[2] * v.last()
		for h := 0; h < len(v.data); h += block {
			copy(v.data[h:][:block], append(slices.Clone(v.data[h+v.last():h+block]), v.data[h:h+v.last()]...))
		}
		c.in = []dense{c.in[0], v}
		return c.eval()
	}},
}

var linearMistakes = []mistake{
	{"no bias", kindOf(func(o op.Linear) bool { return o.Bias }), another(func(op.Linear, *calc) op.Op { return op.Linear{} })},
	{"rows one off", kindOf[op.Linear](nil), weight(0, func(w dense) {
		copy(w.data, append(slices.Clone(w.data[w.last():]), w.data[:w.last()]...))
	})},
	{"one row twice", kindOf[op.Linear](nil), weight(0, func(w dense) {
		if n := w.last(); len(w.data) > n {
			copy(w.data[n:2*n], w.data[:n])
		}
	})},
	{"a column dropped", kindOf[op.Linear](nil), weight(0, func(w dense) {
		for i := 0; i < len(w.data); i += w.last() {
			w.data[i] = 0
		}
	})},
	{"rows of other tokens", kindOf[op.Lookup](nil), func(c calc) []float64 {
		ids := dense{c.in[0].shape, slices.Clone(c.in[0].data)}
		for i := range ids.data {
			ids.data[i] = math.Mod(ids.data[i]+1, c.eachRowOf(0))
		}
		c.in = []dense{ids}
		return c.eval()
	}},
}

// eachRowOf is the number of rows of a weight.
func (c calc) eachRowOf(k int) float64 { return float64(len(c.w[k].data) / c.w[k].last()) }

var streamMistakes = []mistake{
	{"no residual", func(e *order.Entry) bool {
		_, predicts := e.Op.(op.AltUpPredict)
		_, adds := e.Op.(op.Add)
		return predicts || adds && !strings.HasSuffix(e.Name, "scores_masked")
	}, func(c calc) []float64 {
		if _, predicts := c.op.(op.AltUpPredict); !predicts {
			return slices.Clone(c.in[1].data)
		}
		return after(func(c calc, y []float64) {
			for i := range y {
				y[i] = c.f(y[i] - c.in[1].data[i])
			}
		})(c)
	}},
	{"constant not rounded", func(e *order.Entry) bool {
		switch o := e.Op.(type) {
		case op.Scale:
			return o.By.Cast
		case op.AddScale:
			return o.By.Cast
		}
		return false
	}, func(c calc) []float64 {
		switch o := c.op.(type) {
		case op.Scale:
			o.By.Cast, c.op = false, op.Scale{By: op.Const{Value: o.By.Value}}
		case op.AddScale:
			o.By.Cast, c.op = false, op.AddScale{By: op.Const{Value: o.By.Value}, Divide: o.Divide}
		}
		return c.eval()
	}},
	{"sum not scaled", kindOf[op.AddScale](nil), another(func(op.AddScale, *calc) op.Op { return op.Add{} })},
	{"not rescaled", kindOf[op.Rescale](nil), func(c calc) []float64 { return slices.Clone(c.in[0].data) }},
	{"coefficient without 1", kindOf[op.AltUpCorrect](nil), slipped(slip{lost: 1})},
	{"another layer's input", kindOf[op.Select](nil), another(func(o op.Select, c *calc) op.Op {
		o.Index = (o.Index + 1) % c.in[0].shape[o.Axis]
		return o
	})},
}

// computes are the operations whose result a port may spoil.
func computes(e *order.Entry) bool {
	switch e.Op.(type) {
	case op.Linear, op.RMSNorm, op.Mul, op.Add, op.GELU, op.GELUTanh, op.SiLU, op.Context, op.RoPE, op.AltUpCorrect, op.AltUpPredict:
		return !strings.HasSuffix(e.Name, "scores_masked")
	}
	return false
}

var resultMistakes = []mistake{
	{"times 1.01", computes, after(func(c calc, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 1.01)
		}
	})},
	{"clamped", computes, after(func(_ calc, y []float64) {
		for i := range y {
			y[i] = min(max(y[i], -0.5), 0.5)
		}
	})},
	{"channels zero", computes, after(func(c calc, y []float64) {
		n := c.shape[len(c.shape)-1]
		for i := range y {
			if i%n >= n-max(n/4, 1) {
				y[i] = 0
			}
		}
	})},
}
