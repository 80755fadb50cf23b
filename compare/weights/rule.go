package weights

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// rule says when an element of the port is what a relation makes of one of the original: scale·x + add, rounded.
type rule struct {
	scale, add float64
	misread    *misreading // before all else; nil for none
	round      rounding
	near       hooks.DType // a number that many steps of this format beside it is allowed; 0: none is
	steps      float64
}

// plainRule is x + add, rounded.
func plainRule(add float64, r rounding) rule { return rule{scale: 1, add: add, round: r} }

// nearly is a rule that allows a step of the port's numbers: those of a scaling are rounded more than once.
func (q rule) nearly(local *Tensor, steps float64) rule {
	q.near, q.steps = local.DType, steps
	if q.round.dtype != 0 {
		q.near = q.round.dtype
	}
	return q
}

// makes is what the rule makes of x, before it is rounded.
func (q *rule) makes(x float64) float64 {
	if q.misread != nil {
		x = q.misread.of(x)
	}
	return float64(x*q.scale) + q.add
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

func (m *misreading) String() string {
	if m.written == m.read {
		return fmt.Sprintf("the two bytes of each %s are in the other order", m.written)
	}
	return fmt.Sprintf("the bits are those of %s, read as %s", m.written, m.read)
}

// misreadings are those by which a tensor of two-byte numbers can be spoilt.
var misreadings = []*misreading{{hooks.BF16, hooks.F16}, {hooks.F16, hooks.BF16}, {hooks.BF16, hooks.BF16}, {hooks.F16, hooks.F16}}
