package measure

import (
	"math"
	"math/bits"
	"slices"
)

// MaxSlices bounds the indexes of an axis that are measured one by one, at 16 bytes each: twice the largest vocabulary. A longer axis gets a
// note in place of slices.
const MaxSlices = 1 << 19

// axis accumulates one axis of a tensor: the squares of all elements of each index.
type axis struct {
	number    int // which axis
	size      int
	diff, ref []float64 // Σ(l−r)² and Σr² of each index
}

// newAxes returns an accumulator for each axis with more than one index, and whether an axis was too long.
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

// medianNorm is the median, of an even number the lower one, of the square roots of the squares that are not zero; 0 if all are. That is
// the root of the median of the squares.
func medianNorm(squares []float64) float64 {
	some := make([]float64, 0, len(squares))
	for _, s := range squares {
		if s > 0 {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return 0
	}
	return math.Sqrt(lowerMedian(some))
}

// lowerMedian is the element at (n − 1)/2 of n > 0 numbers without NaN, in ascending order. It reorders x: it partitions the range around a
// median of three, and sorts a range that is short or shrinks slowly.
func lowerMedian(x []float64) float64 {
	k := (len(x) - 1) / 2
	for splits := 2 * bits.Len(uint(len(x))); splits > 0 && len(x) > 32; splits-- {
		a, b, c := x[0], x[len(x)/2], x[len(x)-1]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := 0, len(x)-1
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i, j = i+1, j-1
			}
		}
		switch { // x[:j+1] ≤ pivot ≤ x[i:]
		case k <= j:
			x = x[:j+1]
		case k >= i:
			x, k = x[i:], k-i
		default:
			return pivot
		}
	}
	slices.Sort(x)
	return x[k]
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
