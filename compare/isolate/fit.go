package isolate

import (
	"cmp"
	"fmt"
	"math"
	"strings"

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

// clearFit is how many standard errors a fitted scale has to be from 1 to be called the error itself, and not only what
// another error comes to on average. A wrong gain or a noisy weight scatter far more about their best factor than that.
const clearFit = 50

// Factor reports whether all elements of the entry are wrong by a common factor, Scale: a factor clearly different
// from 1 and 0, with a larger effect on the elements than their remaining error. The standard error of a scale is
// the error of one element, per unit of its size, divided by the root of the number of elements.
func (c *Certificate) Factor() bool {
	scale, e := float64(c.Scale), float64(c.ScaleError)
	off := math.Abs(scale - 1)
	everywhere := c.Outside == c.Elements
	return c.Outcome == Bug && everywhere && off > 0 && min(off, math.Abs(scale)) >= clearFit*e && off > math.Sqrt(float64(cmp.Or(c.Sampled, c.Elements)))*e
}

// leastWorst is the smallest distance that is said in units of the rounding bound. A unit is the dtype's last place where the bound is smaller, so that
// an element outside of its bound may be one unit away.
const leastWorst = 2

// Detail puts a BUG into words.
func (c *Certificate) Detail() string {
	scaled := fmt.Sprintf("scaled by %.9g ± %.1g", float64(c.Scale), float64(c.ScaleError))
	text := fmt.Sprintf("wrong on its own inputs: %d of %d elements differ by more than rounding", c.Outside, c.Elements)
	if c.Nearer != nil {
		text = c.Nearer.words()
	} else if measure.Finite(float64(c.Worst)) && c.Worst >= leastWorst {
		text += fmt.Sprintf(", up to %.2g times the rounding bound", float64(c.Worst))
	}
	if len(c.Set) > 0 {
		text += " (" + strings.Join(c.Set, ", ") + ")"
	}
	if c.Factor() {
		text += "; all of it is " + scaled
	}
	return text
}
