package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Free arithmetic allows a row half a unit at every step, and all elements of a norm's row share some of these steps: one
// row alone may be too large by all that its bound allows. Many rows may not, being rounded each by itself: what they have in
// common is no rounding. This is the scale of [fit] for a form of operation, over all its entries.

// shift is how much too large some elements are, as a share of themselves, and the most that their bounds allow.
type shift struct{ by, most float64 }

// alike are rows whose shared steps may well be the same numbers, and are rounded alike then: those of one entry, behind
// the same weights, whatever the pass; of softmax those whose sums of exponentials are one number of the dtype.
type alike struct {
	entry int
	sum   float64
}

// dominated is the probability from which on a softmax's row says nothing: a sum a little above 1 is rounded to 1 by every
// engine, and so not up as often as down.
const dominated = 0.9

// shifts are those of rows that are rounded alike, each by its own bounds, in the order of the rows.
type shifts map[alike][]shift

// newShifts takes the rows of an entry, j being the judgement in free arithmetic; none of an operation that saturates, where
// the rounding of many arguments goes one way.
func newShifts(j *judged, o op.Op, entry, width int) shifts {
	_, softmax := o.(op.Softmax)
	if saturates(o) && !softmax {
		return nil
	}
	all := shifts{}
	for at := 0; at+width <= len(j.x.Data); at += width {
		s, top := j.shift(at, at+width)
		of := alike{entry: entry}
		if softmax {
			of = alike{sum: floats.Round(j.engine.DType, 1/top)}
		}
		if s.most > 0 && finite(s.most) && !(softmax && top > dominated) {
			all[of] = append(all[of], s)
		}
	}
	return all
}

// shift fits a scale to some elements, as [fit] does, and finds the largest of them.
func (j *judged) shift(from, to int) (s shift, top float64) {
	var weight float64
	for i := from; i < to; i++ {
		x, y := j.x.Data[i], j.y.Data[i]
		w, e, unit := floats.Round(j.d, x), j.x.Bound[i], lastPlace(j.d, x)
		b := e + unit/2
		if w == 0 || !finite(w) || !finite(y) || !finite(b) || b <= 0 || j.masked(i) {
			continue
		}
		r := w / b
		weight += float64(r * r)
		s.by += float64(r * ((y - w) / b))
		s.most += float64(math.Abs(r) * ((e + unit) / b))
		top = max(top, w)
	}
	return shift{s.by / weight, s.most / weight}, top
}

// mean is the shift of rows together, each weighing as its bounds let it know.
func mean(rows []shift) shift {
	var by, weight, most float64
	for _, r := range rows {
		w := 1 / float64(r.most*r.most)
		by += float64(w * r.by)
		weight += w
		most += 1 / r.most
	}
	return shift{by / weight, most / weight}
}

const (
	// chanceOfShift is the chance, at most, of calling rows of a healthy engine off.
	chanceOfShift = 1e-9
	// leastGroups is from how many groups of rows a standard error is taken.
	leastGroups = 16
)

// common returns how much too large groups of rows are together, and how much chance may make of that. Of independent
// numbers d within ±h that are as often up as down, Σ d/h² / Σ 1/h² is beyond √(2·ln(2/p) / Σ 1/h²) with a chance of at most
// p (Hoeffding, 1963); of many it is seldom beyond scaleSigmas standard errors. Steps that all elements share, whatever their
// row, may add scaleUnits units of float32.
func common(groups []shift) (by, allowed float64) {
	by = mean(groups).by
	var weight, squares float64
	for _, g := range groups {
		w := 1 / float64(g.most*g.most)
		weight += w
		d := float64(w * (g.by - by))
		squares += float64(d * d)
	}
	allowed = math.Sqrt(2 * math.Log(2/chanceOfShift) / weight)
	if len(groups) >= leastGroups {
		allowed = min(allowed, scaleSigmas*math.Sqrt(squares)/weight)
	}
	return by, allowed + scaleUnits*0x1p-24
}

// shifted says why free arithmetic does not explain an entry that it might: together with the others of its form that do not
// follow transformers, it is off by a factor. It is empty where that is not so.
func (t *trial) shifted(others map[order.Node]*explanations, x *explanations) string {
	all := maps.Clone(x.shifts)
	nodes := slices.SortedFunc(maps.Keys(others), func(a, b order.Node) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Entry, b.Entry))
	})
	for _, n := range nodes { // in their order, since a sum depends on it
		if o := others[n]; n != t.node && len(o.left[string(Strict)]) > 0 {
			for of, rows := range o.shifts {
				all[of] = append(slices.Clip(all[of]), rows...)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	var groups []shift
	for _, of := range slices.SortedFunc(maps.Keys(all), func(a, b alike) int {
		return cmp.Or(cmp.Compare(a.entry, b.entry), cmp.Compare(a.sum, b.sum))
	}) {
		groups = append(groups, mean(all[of]))
	}
	by, allowed := common(groups)
	if math.Abs(by) <= allowed {
		return ""
	}
	return fmt.Sprintf("one by one they might be rounding, but the rows of %s are together scaled by %.6g ± %.1g", op.Form(t.entry.Op), 1+by, allowed)
}
