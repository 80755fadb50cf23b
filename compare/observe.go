package compare

import (
	"math"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// Pair is two tensors of one entry as they were compared: the row with its verdict, and the parts of both that are in scope. Of a
// trace alone both are the same. What is found later, such as Result.Roots, is in the rows of the result only.
type Pair struct {
	Row              *Row
	Local, Reference measure.View // of equal shapes
	Axes             string       // a letter an axis, see [order.Entry]; empty where they are unknown
	// Masks are the numbers below which an element of either side is masked; both −Inf where the entry has no mask.
	Masks [2]float64
	Alone bool // both are one trace, which is not compared with anything
}

// observe shows a decided pair to whoever asked for it. Tensors of different shapes have no pair of numbers.
func (w *walker) observe(p *pair) error {
	if w.o.Observe == nil || p.row.Metrics == nil {
		return nil
	}
	seen := Pair{Row: &w.res.Rows[len(w.res.Rows)-1], Local: p.l, Reference: p.r, Axes: p.axes, Alone: w.o.Alone, Masks: [2]float64{math.Inf(-1), math.Inf(-1)}}
	if p.entry.Compare != order.All {
		for side, v := range []measure.View{p.l, p.r} {
			if v.Rec.DType.Float() {
				seen.Masks[side] = measure.MaskLimit(v.Rec.DType, w.sides[side].m.DType)
			}
		}
	}
	return w.o.Observe(seen)
}
