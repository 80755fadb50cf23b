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
	scale, err float64 // s, and its standard error √Σ(moved − (s−1)·q)² / Σq, which does not take errors to be of one size (White, 1980)
}

// newFit fits a scale in one pass, every element being taken for independent. With w and b as above an element has the weight
// q = w²/b² and moves the scale by moved = w·(y−w)/b². NaN where no element has a scale.
func newFit(j *judged) fit {
	var weight, moves, qq, mm, mq float64 // Σ of q, moved, q², moved² and moved·q
	for i, x := range j.x.Data {
		if !j.x.Sampled(i) {
			continue
		}
		w, y := floats.Round(j.d, x), j.y.Data[i]
		b := j.x.Bound[i] + lastPlace(j.d, w)/2
		if w == 0 || !measure.Finite(w) || !measure.Finite(y) || !measure.Finite(b) || b <= 0 {
			continue
		}
		r := w / b
		q, moved := float64(r*r), float64(r*((y-w)/b))
		weight += q
		moves += moved
		qq += float64(q * q)
		mm += float64(moved * moved)
		mq += float64(moved * q)
	}
	if !(weight > 0) || !measure.Finite(qq) {
		return fit{math.NaN(), math.NaN()}
	}
	d := moves / weight
	return fit{1 + d, math.Sqrt(max(mm-float64(2*d*mq)+float64(d*d*qq), 0)) / weight}
}

// fitScale fits a scale to a tensor.
func (c *Certificate) fitScale(j *judged) {
	f := newFit(j)
	c.Scale, c.ScaleError = measure.Number(f.scale), measure.Number(f.err)
}
