package measure

import (
	"math"
	"slices"
)

// MaxSlices bounds the indexes of an axis that are measured one by one, at 16 bytes each: twice as many as the largest
// vocabulary has. Longer axes get no slices, and a note on the row says so.
const MaxSlices = 1 << 19

// axis accumulates one axis of a tensor: for each of its indexes, the squares of all elements there.
type axis struct {
	number    int // which axis
	size      int
	diff, ref []float64 // Σ(l−r)² and Σr² of each index
}

// newAxes returns an accumulator for each axis that has more than one index, and whether one was left out as too long.
func newAxes(shape []int) (axes []axis, tooLong bool) {
	if Elements(shape) == 0 {
		return nil, false
	}
	for i, n := range shape {
		if n > MaxSlices {
			tooLong = true
		} else if n > 1 {
			axes = append(axes, axis{i, n, make([]float64, n), make([]float64, n)})
		}
	}
	return axes, tooLong
}

// add adds the squares of consecutive indexes, from the first on.
func (a *axis) add(first int, diff, ref []float64) {
	d, r := a.diff[first:first+len(diff)], a.ref[first:first+len(diff)]
	for i, x := range diff {
		d[i] += x
		r[i] += ref[i]
	}
}

// worst returns the index with the largest relative L2 and that error:
//
//	e(i) = ‖l(i) − r(i)‖ / max(‖r(i)‖, floor(i), median of ‖r(j)‖ over the j with r(j) ≠ 0)
//
// The median keeps an index with next to nothing in it, such as a channel that is almost always zero, from turning
// noise into a large ratio; being a median, it is not raised by a few massive activations. Indexes that are exactly zero
// have no part in it, or a tensor that is mostly zero would have no floor at all. Where the denominator is zero the
// error is 0 for equal slices and infinite for others. floor may be nil.
func (a axis) worst(floor func(i int) float64) (index int, err float64) {
	median := medianNorm(a.ref)
	err = -1
	for i := range a.size {
		den := max(math.Sqrt(a.ref[i]), median)
		if floor != nil {
			den = max(den, floor(i))
		}
		if e := Ratio(math.Sqrt(a.diff[i]), den); e > err {
			index, err = i, e
		}
	}
	return index, err
}

// medianNorm is the median, of an even number the lower one, of the square roots of the squares that are not zero; 0 if all are.
func medianNorm(squares []float64) float64 {
	var norms []float64
	for _, s := range squares {
		if s > 0 {
			norms = append(norms, math.Sqrt(s))
		}
	}
	if len(norms) == 0 {
		return 0
	}
	slices.Sort(norms)
	return norms[(len(norms)-1)/2]
}

// Ratio is err/den where both say something: 0 for no error, whatever the denominator, infinite for an error over zero
// and, so that an overflow is never taken for a match, for what is not a number or over infinity.
func Ratio(err, den float64) float64 {
	if err == 0 {
		return 0
	}
	if q := err / den; q == q && !math.IsInf(den, 0) {
		return q
	}
	return math.Inf(1)
}
