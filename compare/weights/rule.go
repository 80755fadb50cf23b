package weights

import (
	"cmp"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// rule says when an element of the port is what a relation makes of one of the original: scale·x + add, rounded.
type rule struct {
	scale, add float64
	misread    *misreading // before all else; nil for none
	round      rounding
	near       hooks.DType // the format in which steps are counted; 0: the number must be exact
	steps      float64
}

// plainRule is x + add, rounded.
func plainRule(add float64, r rounding) rule { return rule{scale: 1, add: add, round: r} }

// nearly is a rule that allows a step of the port's numbers: those of a scaling are rounded more than once.
func (q rule) nearly(local *Tensor, steps float64) rule {
	q.near, q.steps = cmp.Or(q.round.dtype, local.DType), steps
	return q
}

// makes is what the rule makes of x, before it is rounded.
func (q *rule) makes(x float64) float64 {
	if q.misread != nil {
		x = q.misread.of(x)
	}
	return float64(x*q.scale) + q.add
}

// rounds is what the rule makes of x. A sum is rounded to float32 before.
func (q rule) rounds(x float64) float64 {
	if q.add != 0 {
		x = float64(float32(x + q.add))
	}
	return q.round.of(x)
}

// holds says whether l is what the rule makes of x. A sum may have been rounded to float32 before.
func (q *rule) holds(l, x float64) bool {
	y := q.makes(x)
	if same(l, q.round.of(y)) || q.add != 0 && same(l, q.round.of(float64(float32(y)))) {
		return true
	}
	return q.near != 0 && math.Abs(l-y) <= q.steps*floats.Spacing(q.near, y) && floats.Round(q.near, l) == l
}

// misreading is the bits of one format taken for those of another.
type misreading struct{ written, read hooks.DType }

func (m *misreading) of(x float64) float64 { return floats.Misread(m.written, m.read, x) }

func (m *misreading) said() phrase {
	if m.written == m.read {
		return say("", "the two bytes of each %s are in the other order", m.written)
	}
	return say("", "the bits are %s, read as %s", m.written, m.read)
}

// misreadings are those by which a tensor of two-byte numbers can be spoilt.
var misreadings = []*misreading{{hooks.BF16, hooks.F16}, {hooks.F16, hooks.BF16}, {hooks.BF16, hooks.BF16}, {hooks.F16, hooks.F16}}

// rounding converts numbers of the original to numbers of the port. The zero value does not round.
type rounding struct {
	dtype hooks.DType // 0: none
	cut   bool        // the low bits are cut off: toward zero
	via   hooks.DType // rounded to this one before; 0: to none
	clamp bool        // what lies beyond the largest number becomes that, and not an infinity
}

// of rounds a number.
func (r rounding) of(x float64) float64 {
	if r.via != 0 {
		x = floats.Round(r.via, x)
	}
	switch {
	case r.dtype == 0:
		return x
	case r.cut:
		return floats.Truncate(r.dtype, x)
	case r.clamp && x == x:
		most := floats.Largest(r.dtype)
		x = min(max(x, -most), most)
	}
	return floats.Round(r.dtype, x)
}

// String names the rounding.
func (r rounding) String() string {
	switch {
	case r.dtype == 0:
		return ""
	case r.cut:
		return r.dtype.String() + ", low bits cut off"
	case r.via != 0:
		return r.dtype.String() + " by way of " + r.via.String()
	}
	return r.dtype.String() + ", to nearest even" // also where it is clamped: that has a name of its own
}

// same is equality of two numbers: NaN is NaN, and both zeros are one.
func same(a, b float64) bool { return a == b || a != a && b != b }

// roundings are those that may lie between two dtypes: none first. Formats wider than the original's change nothing, and those
// wider than the port's cannot be told from none. A format of eight bits counts only where the port stores it: stored wider, it may be a
// tensor that was never loaded.
func roundings(original, local hooks.DType) []rounding {
	list := []rounding{{}}
	if !original.Float() || !local.Float() {
		return list
	}
	for _, d := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16, hooks.F8E4M3, hooks.F8E5M2} {
		if holds(original, d) || !holds(d, local) || d.Size() == 1 && d != local {
			continue
		}
		list = append(list, rounding{dtype: d})
		if d == hooks.F16 || d == hooks.F8E5M2 {
			list = append(list, rounding{dtype: d, clamp: true})
		}
		if d == hooks.BF16 || d == hooks.F16 || d == hooks.F32 {
			list = append(list, rounding{dtype: d, cut: true})
		}
	}
	for _, via := range []hooks.DType{hooks.BF16, hooks.F16} {
		if !holds(original, via) && !holds(via, local) && !holds(local, via) {
			list = append(list, rounding{dtype: local, via: via})
		}
	}
	return list
}

// holds reports whether every number of the float type a is one of b.
func holds(a, b hooks.DType) bool {
	return floats.Precision(a) <= floats.Precision(b) && floats.Largest(a) <= floats.Largest(b) && (a == b || b == hooks.F64 || a != hooks.F64 && floats.MinExponent(a)-floats.Precision(a) >= floats.MinExponent(b)-floats.Precision(b))
}

// largestOf returns the upper bound of the numbers that a rounding keeps finite: the largest number of the dtype plus half a spacing.
func largestOf(r rounding) float64 {
	most := floats.Largest(r.dtype)
	return most + floats.Spacing(r.dtype, most)/2
}
