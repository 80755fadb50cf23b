package certify

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
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

// cluster fits again with elements of one value taken for one: they come out of the same arithmetic and are off
// together, as in a tensor that has only a few different numbers (Liang and Zeger, 1986).
func (f *fit) cluster(j *judged) {
	var all []fitted
	j.elements(func(e fitted, _ float64) { all = append(all, e) })
	slices.SortFunc(all, func(a, b fitted) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	var total, qq, mm, mq float64
	for i := 0; i < len(all); {
		var q, moved float64
		x := all[i].x
		for ; i < len(all) && all[i].x == x; i++ {
			q += all[i].q
			moved += all[i].moved
		}
		total += moved
		qq += float64(q * q)
		mm += float64(moved * moved)
		mq += float64(moved * q)
	}
	f.finish(total, qq, mm, mq)
}

// The scale is off when it differs from 1 by more than scaleSigmas standard errors and, beside that, by more than shared
// steps may add: a constant, a reciprocal or a scalar factor that an engine rounds once for all elements, scaleUnits units
// of float32 together, and where a row shares one statistic, such as a norm's, or the arithmetic is free, all that the bounds allow. fitElements is
// the least number of elements that a standard error is taken from.
const (
	scaleSigmas = 8
	scaleUnits  = 16
	fitElements = 256
)

// off reports whether the scale is, when shared steps may add that much.
func (f *fit) off(allowed float64) bool {
	return f.elements >= fitElements && math.Abs(f.scale-1) > scaleSigmas*f.err+allowed
}

// fitScale fits a scale to a tensor, and looks twice where it seems to be off.
func (c *Certificate) fitScale(j *judged, shares bool) {
	f := newFit(j)
	allowed := scaleUnits * 0x1p-24
	if shares {
		allowed += f.shared
	}
	if f.off(allowed) {
		f.cluster(j)
		c.ScaleOff = f.off(allowed)
	}
	c.Scale, c.ScaleError = measure.Number(f.scale), measure.Number(f.err)
	c.allowed = allowed
}

// shares reports whether a number that multiplies all elements of a row is computed on the way to an entry, also where it was not
// captured.
func (t *trial) shares() bool {
	for _, n := range t.cut.Steps {
		if s, _ := op.Shares(t.i.list.Entries[n.Entry].Op); s.Factor() {
			return true
		}
	}
	return false
}

// replayScale takes a scale's finding back where a usual order of summation moves the scale as far, in either direction:
// where the terms have few values, the roundings of a long sum add up alike in every element.
func (t *trial) replayScale(c *Certificate, j *judged) error {
	off := math.Abs(float64(c.Scale)-1) - scaleSigmas*float64(c.ScaleError) - c.allowed
	for _, s := range op.Summations() {
		a := j.engine
		a.Sum = &s
		k, err := t.in(a)
		if err != nil {
			return err
		}
		y := op.Value{Shape: k.x.Shape, Data: make([]float64, len(k.x.Data))}
		for i, v := range k.x.Data {
			y.Data[i] = floats.Round(t.d, v)
		}
		f := newFit(&judged{x: j.x, y: y, d: t.d})
		if math.Abs(f.scale-1) >= off {
			c.ScaleOff = false
			if c.Summation == "" {
				c.Summation = s.String()
			}
			return nil
		}
	}
	return nil
}
