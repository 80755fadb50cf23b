package measure

import (
	"math"

	"github.com/tracediff/tracediff/internal/lanes"

	"github.com/tracediff/tracediff/order"
)

// tally is what is counted, found and added up over a block, or over the blocks of a tensor so far. Places are elements
// of the view, from its start.
type tally struct {
	sum lanes.Squares // the other sums, by axis, are not here

	Compared, Masked, unequal int64
	maxULP                    uint64
	maxAbs                    float64
	maxAt                     int64 // −1: no two elements differ
	maxL, maxR                float64
	Side                      [2]lanes.Moments
	nanBoth, nonFinite        int64
	nonFiniteAt               int64 // −1: there is none
	Pattern                   Pattern
}

// empty is the tally of nothing.
var empty = tally{maxAt: -1, nonFiniteAt: -1}

// merge takes in the tally of the block that comes next.
func (t *tally) merge(o *tally) {
	t.sum.Add(o.sum)
	t.Compared += o.Compared
	t.Masked += o.Masked
	t.unequal += o.unequal
	t.maxULP = max(t.maxULP, o.maxULP)
	if o.maxAt >= 0 {
		t.differ(o.maxAbs, o.maxAt, o.maxL, o.maxR)
	}
	for i := range t.Side {
		t.Side[i].Merge(&o.Side[i])
	}
	t.nanBoth += o.nanBoth
	t.nonFinite += o.nonFinite
	if t.nonFiniteAt < 0 {
		t.nonFiniteAt = o.nonFiniteAt
	}
	t.Pattern.merge(&o.Pattern)
}

// differ notes a difference, if it is the first or the largest.
func (t *tally) differ(d float64, at int64, l, r float64) {
	if t.maxAt < 0 || d > t.maxAbs {
		t.maxAbs, t.maxAt, t.maxL, t.maxR = d, at, l, r
	}
}

// counts looks at a pair of which one is NaN, infinite or as large as huge, and reports whether it takes part in the sums.
func (t *tally) counts(rule order.Rule, huge [2]float64, a, b float64, at int64) bool {
	maskA, maskB := a < -huge[0], b < -huge[1]
	if rule == order.Allowed && (maskA || maskB) {
		if maskA != maskB {
			t.Pattern.add(maskA, at)
		} else {
			t.Masked++
		}
		return false
	}
	if Finite(a) && Finite(b) {
		// Both hold the same mask value: it is equal, and in the norms it would hide every other element.
		if a == b && maskA && maskB {
			t.Masked++
			return false
		}
		return true
	}
	t.special(a, b, at)
	return false
}

// special counts a pair of which one at least is NaN or infinite.
func (t *tally) special(a, b float64, at int64) {
	t.Side[0].Special(a)
	t.Side[1].Special(b)
	switch {
	case a != a && b != b, a == b && a > 0: // −Inf on both sides is how some engines mask
		t.nanBoth++
	case a != b:
		t.nonFinite++
		if t.nonFiniteAt < 0 {
			t.nonFiniteAt = at
		}
	}
}

// Finite reports whether x is neither NaN nor infinite.
func Finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
