package testengine

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
)

// SmallMistakes are those that change few bits of a 16-bit dtype.
var SmallMistakes = []Mistake{
	{"truncated", computes, func(c Call) []float64 {
		y := c.Eval()
		for i := range y {
			b := math.Float32bits(float32(y[i]))
			switch c.DType {
			case hooks.BF16:
				b &^= 0xffff
			case hooks.F16:
				b &^= 0x1fff
			}
			y[i] = float64(math.Float32frombits(b))
		}
		return y
	}},
	{"eps x10", KindOf[op.RMSNorm](nil), Another(func(o op.RMSNorm, _ *Call) op.Op { return op.RMSNorm{Eps: o.Eps * 10, Gain: o.Gain} })},
	{"eps x100", KindOf[op.RMSNorm](nil), Another(func(o op.RMSNorm, _ *Call) op.Op { return op.RMSNorm{Eps: o.Eps * 100, Gain: o.Gain} })},
	{"eps 0", KindOf[op.RMSNorm](nil), Another(func(o op.RMSNorm, _ *Call) op.Op { return op.RMSNorm{Eps: 0, Gain: o.Gain} })},
	{"n-1", normMistakes[4].Fits, normMistakes[4].Compute},
	{"times 1.001", computes, after(func(c Call, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 1.001)
		}
	})},
	{"times 1.002", computes, after(func(c Call, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 1.002)
		}
	})},
	{"times 0.999", computes, after(func(c Call, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 0.999)
		}
	})},
	{"times 1.004", computes, after(func(c Call, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 1.004)
		}
	})},
	{"scale a little", KindOf[op.Scores](nil), Another(func(o op.Scores, _ *Call) op.Op { return op.Scores{Scale: o.Scale * 1.003} })},
	{"const 0.044", KindOf[op.GELUTanh](nil), Another(func(op.GELUTanh, *Call) op.Op { return op.GELU{} })},
	{"const 0.044", KindOf[op.GELU](nil), Another(func(op.GELU, *Call) op.Op { return op.GELUTanh{} })},
	{"a row off", computes, after(func(c Call, y []float64) {
		n := c.Shape[len(c.Shape)-1]
		for i := range y {
			if i/n%2 == 0 {
				y[i] = c.f(y[i] * 1.003)
			}
		}
	})},
}

// timesEach multiplies one element of so many by a factor.
func timesEach(f float64, every int) Mistake {
	return Mistake{fmt.Sprint("times ", f, " each ", every), computes, after(func(c Call, y []float64) {
		for i := range y {
			if i%every == 0 {
				y[i] = c.f(y[i] * f)
			}
		}
	})}
}

// TinyMistakes are those that change few bits of float32.
var TinyMistakes = []Mistake{
	timesEach(1+3e-7, 1), timesEach(1+1e-6, 1), timesEach(1-1e-6, 3), timesEach(1+2e-7, 2), timesEach(1+1e-5, 1), timesEach(1+6e-8, 1),
	{"eps x1.1", KindOf[op.RMSNorm](nil), Another(func(o op.RMSNorm, _ *Call) op.Op { return op.RMSNorm{Eps: o.Eps * 1.1, Gain: o.Gain} })},
	{"eps x2", KindOf[op.RMSNorm](nil), Another(func(o op.RMSNorm, _ *Call) op.Op { return op.RMSNorm{Eps: o.Eps * 2, Gain: o.Gain} })},
	{"truncated", computes, func(c Call) []float64 {
		y := c.Eval()
		for i := range y {
			y[i] = float64(math.Float32frombits(math.Float32bits(float32(y[i])) &^ 7))
		}
		return y
	}},
}
