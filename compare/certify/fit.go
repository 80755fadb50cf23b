package certify

import (
	"math"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/floats"
)

// fit is the scale s for which s·w comes nearest to y, w = R(x) being what an engine without any error writes: least squares
// in which each element weighs as much as its bound lets it know,
//
//	s = Σ w·y/b² / Σ w²/b²,   b = δ + half a unit in the last place,
//
// so that a massive activation has no more of a say than others. Against R(x), not x: the last rounding is the same for
// both, and on structured data, where it is far from random, it would be taken for a scale.
type fit struct {
	scale, err float64 // s, and its standard error: see [fit.cluster]
	// elements is how many independent elements would have told as much: (Σq)² / Σq², q = w²/b² (Kish's effective size).
	elements float64
	weight   float64 // Σq
	shared   float64 // Σq·δ/|w| / Σq: how far a statistic that all elements share may move the scale
}

// fitted is one element in a fit.
type fitted struct {
	x        float64
	q, moved float64 // w²/b², and w·(y−w)/b²
}

// elements hands out those that know something of a scale, each with its reach δ/|w|.
func (j *judged) elements(do func(fitted, float64)) {
	for i, x := range j.x.Data {
		w, y, e := floats.Round(j.d, x), j.y.Data[i], j.x.Bound[i]
		if b := e + lastPlace(j.d, w)/2; w != 0 && measure.Finite(w) && measure.Finite(y) && measure.Finite(b) && b > 0 {
			r := w / b
			do(fitted{x, float64(r * r), float64(r * ((y - w) / b))}, e/math.Abs(w))
		}
	}
}

// newFit fits a scale in one pass, every element being taken for independent.
func newFit(j *judged) fit {
	var f fit
	var moved, qq, mm, mq float64 // Σ of moved, q², moved² and moved·q
	j.elements(func(e fitted, reach float64) {
		f.weight += e.q
		f.shared += float64(e.q * reach)
		moved += e.moved
		qq += float64(e.q * e.q)
		mm += float64(e.moved * e.moved)
		mq += float64(e.moved * e.q)
	})
	if !(f.weight > 0) || !measure.Finite(qq) {
		return fit{scale: math.NaN(), err: math.NaN()}
	}
	f.shared /= f.weight
	f.finish(moved, qq, mm, mq)
	return f
}

// finish takes the sums over independent pieces of moved, q², moved² and moved·q. The standard error is
// √Σ(moved − (s−1)·q)² / Σq, which does not take errors to be of one size (White, 1980).
func (f *fit) finish(moved, qq, mm, mq float64) {
	d := moved / f.weight
	f.scale = 1 + d
	f.err = math.Sqrt(max(mm-float64(2*d*mq)+float64(d*d*qq), 0)) / f.weight
	f.elements = f.weight * f.weight / qq
}

// fitScale fits a scale to a tensor.
func (c *Certificate) fitScale(j *judged) {
	f := newFit(j)
	c.Scale, c.ScaleError = measure.Number(f.scale), measure.Number(f.err)
}
