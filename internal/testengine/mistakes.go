package testengine

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
	tiled       bool    // query head h reads KV head h mod their number
	unmerged    bool    // heads are not concatenated
}

func (s slip) offset() float64 { return 1 - s.lost }

// Damage is a mistake at some entries.
type Damage struct {
	Mistake Mistake
	At      map[string]bool
}

// Mistake is one that ports make: in the constants, the weights or the formula of an operation, computed with the engine's own
// roundings, or in its result.
type Mistake struct {
	Name    string
	Fits    func(e *order.Entry) bool // the operation can have it
	Compute func(c Call) []float64
}

// Mistakes are all that ports make, of any size that shows.
var Mistakes = slices.Concat(normMistakes, activationMistakes, attentionMistakes, linearMistakes, streamMistakes, resultMistakes)

// KindOf is a Fits that wants an operation of a type for which also holds; nil for any of the type.
func KindOf[O op.Op](also func(o O) bool) func(e *order.Entry) bool {
	return func(e *order.Entry) bool {
		o, ok := e.Op.(O)
		return ok && (also == nil || also(o))
	}
}

// Another computes another operation in place of one.
func Another[O op.Op](instead func(o O, c *Call) op.Op) func(c Call) []float64 {
	return func(c Call) []float64 {
		c.op = instead(c.op.(O), &c)
		return c.Eval()
	}
}

// slipped computes with a mistake inside the formula.
func slipped(s slip) func(c Call) []float64 {
	return func(c Call) []float64 {
		c.slip = s
		return c.Eval()
	}
}

// after changes the result.
func after(f func(c Call, y []float64)) func(c Call) []float64 {
	return func(c Call) []float64 {
		y := c.Eval()
		f(c, y)
		return y
	}
}

// WithWeight computes with weight k changed, which f gets a copy of.
func WithWeight(k int, f func(w Tensor)) func(c Call) []float64 {
	return func(c Call) []float64 {
		c.W = slices.Clone(c.W)
		c.W[k].Data = slices.Clone(c.W[k].Data)
		f(c.W[k])
		return c.Eval()
	}
}

func hasGain(gains ...op.Gain) func(e *order.Entry) bool {
	return KindOf(func(o op.RMSNorm) bool { return slices.Contains(gains, o.Gain) })
}

func regain(g op.Gain) func(c Call) []float64 {
	return Another(func(o op.RMSNorm, _ *Call) op.Op { return op.RMSNorm{Eps: o.Eps, Gain: g} })
}

var normMistakes = []Mistake{
	{"epsilon too large", KindOf[op.RMSNorm](nil), Another(func(o op.RMSNorm, _ *Call) op.Op {
		eps := 1e-3
		if o.Eps >= eps {
			eps = 0.1
		}
		return op.RMSNorm{Eps: eps, Gain: o.Gain}
	})},
	{"w for 1 + w", hasGain(op.OnePlus), regain(op.Plain)},
	{"1 + w for w", hasGain(op.Plain, op.After), WithWeight(0, func(w Tensor) {
		for i := range w.Data {
			w.Data[i]++
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
	{"mean taken off", KindOf[op.RMSNorm](nil), func(c Call) []float64 {
		n := c.Shape[len(c.Shape)-1]
		c.In = []Tensor{{c.In[0].Shape, perRow(c.In[0].Data, n, func(x []float64) []float64 {
			mean, y := c.f(c.total(x, nil)/float64(len(x))), slices.Clone(x)
			for i := range y {
				y[i] = c.f(y[i] - mean)
			}
			return y
		})}}
		return c.Eval()
	}},
}

var activationMistakes = []Mistake{
	{"erf for tanh", KindOf[op.GELUTanh](nil), Another(func(op.GELUTanh, *Call) op.Op { return op.GELU{} })},
	{"tanh for erf", KindOf[op.GELU](nil), Another(func(op.GELU, *Call) op.Op { return op.GELUTanh{} })},
	{"SiLU for GELU", KindOf[op.GELUTanh](nil), Another(func(op.GELUTanh, *Call) op.Op { return op.SiLU{} })},
	{"GELU for SiLU", KindOf[op.SiLU](nil), Another(func(op.SiLU, *Call) op.Op { return op.GELUTanh{} })},
	{"no soft cap", KindOf[op.Softcap](nil), Another(func(op.Softcap, *Call) op.Op { return op.Identity{} })},
	{"hard threshold", KindOf[op.ShiftedReLU](nil), after(func(c Call, y []float64) {
		for i := range y {
			if y[i] > 0 {
				y[i] = c.In[0].Data[i]
			}
		}
	})},
	{"deviation taken off", KindOf[op.Cutoff](nil), Another(func(o op.Cutoff, _ *Call) op.Op {
		o.Multiplier.Value = -o.Multiplier.Value
		return o
	})},
	{"no tanh", KindOf[op.Tanh](nil), Another(func(op.Tanh, *Call) op.Op { return op.Identity{} })},
	{"one factor missing", KindOf[op.Mul](nil), func(c Call) []float64 { return slices.Clone(c.In[0].Data) }},
}

var attentionMistakes = []Mistake{
	{"scaled by another size", KindOf[op.Scores](nil), Another(func(o op.Scores, c *Call) op.Op {
		width := float64(c.In[0].Shape[1] * c.In[0].Last())
		return op.Scores{Scale: 1 / math.Sqrt(2*width)}
	})},
	{"scaled twice", KindOf(func(o op.Scores) bool { return o.Scale != 1 }), Another(func(o op.Scores, _ *Call) op.Op { return op.Scores{Scale: o.Scale * o.Scale} })},
	{"heads read tiled", KindOf[op.Scores](nil), slipped(slip{tiled: true})},
	{"cos for sin", KindOf[op.RoPE](nil), Another(func(o op.RoPE, c *Call) op.Op {
		c.In = []Tensor{c.In[0], c.In[2], c.In[1]}
		return o
	})},
	{"interleaved pairs", KindOf[op.RoPE](nil), slipped(slip{interleaved: true})},
	{"another theta", KindOf[op.Rotary](nil), Another(func(o op.Rotary, _ *Call) op.Op { o.Theta *= 8; return o })},
	{"one key too many", KindOf[op.Mask](nil), slipped(slip{ahead: 1})},
	{"window too wide", KindOf(func(o op.Mask) bool { return o.Window > 0 }), Another(func(o op.Mask, _ *Call) op.Op { o.Window++; return o })},
	{"heads not merged", KindOf[op.Context](nil), slipped(slip{unmerged: true})},
	{"values one key off", KindOf[op.Context](nil), func(c Call) []float64 {
		v := Tensor{c.In[1].Shape, slices.Clone(c.In[1].Data)}
		block := v.Shape[2] * v.Last()
		for h := 0; h < len(v.Data); h += block {
			copy(v.Data[h:][:block], append(slices.Clone(v.Data[h+v.Last():h+block]), v.Data[h:h+v.Last()]...))
		}
		c.In = []Tensor{c.In[0], v}
		return c.Eval()
	}},
}

var linearMistakes = []Mistake{
	{"no bias", KindOf(func(o op.Linear) bool { return o.Bias }), Another(func(op.Linear, *Call) op.Op { return op.Linear{} })},
	{"rows one off", KindOf[op.Linear](nil), WithWeight(0, func(w Tensor) {
		copy(w.Data, append(slices.Clone(w.Data[w.Last():]), w.Data[:w.Last()]...))
	})},
	{"one row twice", KindOf[op.Linear](nil), WithWeight(0, func(w Tensor) {
		if n := w.Last(); len(w.Data) > n {
			copy(w.Data[n:2*n], w.Data[:n])
		}
	})},
	{"a column dropped", KindOf[op.Linear](nil), WithWeight(0, func(w Tensor) {
		for i := 0; i < len(w.Data); i += w.Last() {
			w.Data[i] = 0
		}
	})},
	{"rows of other tokens", KindOf[op.Lookup](nil), func(c Call) []float64 {
		ids := Tensor{c.In[0].Shape, slices.Clone(c.In[0].Data)}
		for i := range ids.Data {
			ids.Data[i] = math.Mod(ids.Data[i]+1, float64(c.W[0].rows()))
		}
		c.In = []Tensor{ids}
		return c.Eval()
	}},
}

var streamMistakes = []Mistake{
	{"no residual", func(e *order.Entry) bool {
		_, predicts := e.Op.(op.AltUpPredict)
		_, adds := e.Op.(op.Add)
		return predicts || adds && !strings.HasSuffix(e.Name, "scores_masked")
	}, func(c Call) []float64 {
		if _, predicts := c.op.(op.AltUpPredict); !predicts {
			return slices.Clone(c.In[1].Data)
		}
		return after(func(c Call, y []float64) {
			for i := range y {
				y[i] = c.f(y[i] - c.In[1].Data[i])
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
	}, func(c Call) []float64 {
		switch o := c.op.(type) {
		case op.Scale:
			o.By.Cast, c.op = false, op.Scale{By: op.Const{Value: o.By.Value}}
		case op.AddScale:
			o.By.Cast, c.op = false, op.AddScale{By: op.Const{Value: o.By.Value}, Divide: o.Divide}
		}
		return c.Eval()
	}},
	{"sum not scaled", KindOf[op.AddScale](nil), Another(func(op.AddScale, *Call) op.Op { return op.Add{} })},
	{"not rescaled", KindOf[op.Rescale](nil), func(c Call) []float64 { return slices.Clone(c.In[0].Data) }},
	{"coefficient without 1", KindOf[op.AltUpCorrect](nil), slipped(slip{lost: 1})},
	{"another layer's input", KindOf[op.Select](nil), Another(func(o op.Select, c *Call) op.Op {
		o.Index = (o.Index + 1) % c.In[0].Shape[o.Axis]
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

var resultMistakes = []Mistake{
	{"times 1.01", computes, after(func(c Call, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 1.01)
		}
	})},
	{"clamped", computes, after(func(_ Call, y []float64) {
		for i := range y {
			y[i] = min(max(y[i], -0.5), 0.5)
		}
	})},
	{"channels zero", computes, after(func(c Call, y []float64) {
		n := c.Shape[len(c.Shape)-1]
		for i := range y {
			if i%n >= n-max(n/4, 1) {
				y[i] = 0
			}
		}
	})},
}
