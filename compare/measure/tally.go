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
	most                      difference
	Side                      [2]lanes.Moments
	specials                  specials
	Pattern                   Pattern
}

// difference is that of two elements.
type difference struct {
	by   float64
	at   int64 // −1: no two elements differ
	l, r float64
}

// specials are the elements that are NaN or infinite.
type specials struct {
	both int64 // NaN on both sides, or +Inf on both sides
	one  int64 // NaN or infinite on a side, and different on the other side
	at   int64 // the first of the elements in one; −1 without such an element
}

// empty is the tally of nothing.
var empty = tally{most: difference{at: -1}, specials: specials{at: -1}}

// merge takes in the tally of the block that comes next.
func (t *tally) merge(o *tally) {
	t.sum.Add(o.sum)
	t.Compared += o.Compared
	t.Masked += o.Masked
	t.unequal += o.unequal
	t.maxULP = max(t.maxULP, o.maxULP)
	if o.most.at >= 0 {
		t.differ(o.most)
	}
	for i := range t.Side {
		t.Side[i].Merge(&o.Side[i])
	}
	t.specials.both += o.specials.both
	t.specials.one += o.specials.one
	if t.specials.at < 0 {
		t.specials.at = o.specials.at
	}
	t.Pattern.merge(&o.Pattern)
}

// differ notes a difference, if it is the first or the largest.
func (t *tally) differ(d difference) {
	if t.most.at < 0 || d.by > t.most.by {
		t.most = d
	}
}

// counts looks at a pair with a NaN, an infinity or a huge value, and reports whether it takes part in the sums.
func (t *tally) counts(by *masking, a, b float64, at int64) bool {
	maskA, maskB := a < -by.huge[local], b < -by.huge[reference]
	if by.rule == order.Allowed && (maskA || maskB) {
		if maskA != maskB {
			t.Pattern.add(maskA, at)
		} else {
			t.Masked++
		}
		return false
	}
	if Finite(a) && Finite(b) {
		// Both hold the same mask value. The values are equal, and would hide every other element in the norms.
		if a == b && maskA && maskB {
			t.Masked++
			return false
		}
		return true
	}
	t.special(a, b, at)
	return false
}

// special counts a pair with a NaN or an infinity.
func (t *tally) special(a, b float64, at int64) {
	t.Side[0].Special(a)
	t.Side[1].Special(b)
	switch {
	case a != a && b != b, a == b && a > 0: // −Inf on both sides is how some engines mask
		t.specials.both++
	case a != b:
		t.specials.one++
		if t.specials.at < 0 {
			t.specials.at = at
		}
	}
}

// Finite reports whether x is neither NaN nor infinite.
func Finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
