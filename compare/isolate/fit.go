package isolate

import (
	"math"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
)

// fit is the scale s for which s·w comes nearest to y, w = R(x) being what an engine without any error writes: least squares
// in which each element weighs as much as its bound lets it know,
//
//	s = Σ w·y/b² / Σ w²/b²,   b = δ + half a unit in the last place,
//
// so that a massive activation has no more of a say than others. Against R(x), not x: the last rounding is the same for
// both, and on structured data, where it is far from random, it would be taken for a scale.
type fit struct {
	scale, err float64 // s, and its standard error √Σ(moved − (s−1)·q)² / Σq, which does not take errors to be of one size (White, 1980)
}

// fitting is what a fit is made of, summed up over one part of an entry after the other, every element being taken for independent. With w
// and b as above an element has the weight q = w²/b² and moves the scale by moved = w·(y−w)/b².
type fitting struct{ weight, moves, qq, mm, mq float64 } // Σ of q, moved, q², moved² and moved·q

// see takes in an element of d: w is R(x), e its bound.
func (f *fitting) see(d hooks.DType, w, y, e float64) {
	b := e + LastPlace(d, w)/2
	if w == 0 || !measure.Finite(w) || !measure.Finite(y) || !measure.Finite(b) || b <= 0 {
		return
	}
	r := w / b
	q := float64(r * r)
	f.weight += q
	f.qq += float64(q * q)
	if y == w {
		return
	}
	moved := float64(r * ((y - w) / b))
	f.moves += moved
	f.mm += float64(moved * moved)
	f.mq += float64(moved * q)
}

// fit is NaN where no element has a scale.
func (f *fitting) fit() fit {
	if !(f.weight > 0) || !measure.Finite(f.qq) {
		return fit{math.NaN(), math.NaN()}
	}
	d := f.moves / f.weight
	return fit{1 + d, math.Sqrt(max(f.mm-float64(2*d*f.mq)+float64(d*d*f.qq), 0)) / f.weight}
}

// weighed accumulates the power and the scale of an entry. Masked elements contribute nothing.
type weighed struct {
	power
	fitting
}

func newWeighed() weighed { return weighed{power: newPower()} }

// say sets the power and the scale of a certificate.
func (w *weighed) say(c *Certificate) {
	f := w.fit()
	c.Power, c.Scale, c.ScaleError = w.number(), measure.Number(f.scale), measure.Number(f.err)
}
