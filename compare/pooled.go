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

// alike are rows whose shared steps may well be the same numbers, and are rounded alike then: those of one entry, behind the
// same weights, whatever the pass, or those in which one number decides.
type alike struct {
	entry int
	same  float64
}

// shift is how much too large some elements are, as a share of themselves, and the most that their bounds allow: means in
// which elements, and rows, weigh as much as their bounds let them know. The zero value is of no element.
type shift struct {
	by, most float64 // times weight
	weight   float64
}

func (s *shift) add(o shift) {
	s.by += o.by
	s.most += o.most
	s.weight += o.weight
}

// row makes the mean of a row's elements one piece, of which the bound on the mean is the bound.
func (s shift) row() shift {
	by, most := s.by/s.weight, s.most/s.weight
	w := 1 / float64(most*most)
	if !(w > 0) || !finite(w) {
		return shift{}
	}
	return shift{float64(by * w), 1 / most, w}
}

// shifts are those of rows that are rounded alike.
type shifts map[alike]shift

// add takes in what is known of more of them.
func (s shifts) add(of alike, more shift) {
	if more.weight > 0 {
		sum := s[of]
		sum.add(more)
		s[of] = sum
	}
}

// shift fits a scale to some elements, as [fit] does, where op is far from saturation.
func (j *judged) shift(from, to int, o op.Op) (s shift) {
	for i := from; i < to; i++ {
		x, y := j.x.Data[i], j.y.Data[i]
		w, e, unit := floats.Round(j.d, x), j.x.Bound[i], lastPlace(j.d, x)
		b := e + unit/2
		if w == 0 || !finite(w) || !finite(y) || !finite(b) || b <= 0 || j.masked(i) || !straight(o, w) {
			continue
		}
		r := w / b
		s.add(shift{float64(r * ((y - w) / b)), float64(math.Abs(r) * ((e + unit) / b)), float64(r * r)})
	}
	return s
}

// straight reports whether an operation that gives y is far from saturation there, so that what is rounded inside it goes up
// as often as down: next to 1, a sum with 1 is rounded to 1 by every engine.
func straight(o op.Op, y float64) bool {
	switch o := o.(type) {
	case op.Softcap:
		return math.Abs(y) < o.Cap/2
	case op.Tanh:
		return math.Abs(y) < 0.5
	case op.GELU, op.GELUTanh, op.SiLU:
		return 0 < y && y < 0.3 // of arguments from 0 to about a half
	}
	return true
}

// dominated is the probability from which on a softmax's row says nothing: its sum is a little above 1.
const dominated = 0.9

// shifts takes the rows of an entry, j being the judgement in free arithmetic.
func (t *trial) shifts(j *judged, width int) (shifts, error) {
	all, own := shifts{}, alike{entry: t.node.Entry}
	alone := len(t.cut.Steps) == 1 // nothing but the operation itself is computed
	rows := func(of func(row int) (alike, bool)) {
		for at := 0; at+width <= len(j.x.Data); at += width {
			if of, ok := of(at / width); ok {
				all.add(of, j.shift(at, at+width, t.entry.Op).row())
			}
		}
	}
	switch o := t.entry.Op.(type) {
	case op.ShiftedReLU, op.Cutoff:
		return nil, nil
	case op.Softmax: // the sum of exponentials is the reciprocal of the largest probability
		rows(func(row int) (alike, bool) {
			top := slices.Max(j.x.Data[row*width:][:width])
			return alike{same: floats.Round(j.engine.DType, 1/top)}, top > 0 && top < dominated
		})
	case op.Softcap, op.Tanh, op.GELU, op.GELUTanh, op.SiLU:
		if alone { // every element by itself
			for i, x := range j.x.Data {
				all.add(alike{same: math.Abs(floats.Round(j.d, x))}, j.shift(i, i+1, t.entry.Op).row())
			}
			break
		}
		rows(func(int) (alike, bool) { return own, true })
	case op.RMSNorm: // the mean square; that a weight is one plus something is rounded, too, for all rows behind it
		squares, err := t.meanSquares(width)
		if err != nil {
			return nil, err
		}
		rows(func(row int) (alike, bool) {
			if alone && o.Gain != op.OnePlus && row < len(squares) {
				return alike{same: floats.Round(j.engine.DType, squares[row])}, true
			}
			return own, true
		})
	default:
		rows(func(int) (alike, bool) { return own, true })
	}
	return all, nil
}

// meanSquares are those of the rows of an entry's first input, where it was captured.
func (t *trial) meanSquares(width int) ([]float64, error) {
	n := order.Node{Entry: t.i.list.Index(t.entry.Inputs[0].Name), Pass: t.node.Pass}
	if n.Entry < 0 || !t.i.has(n) || t.entry.Inputs[0].Index != nil {
		return nil, nil
	}
	x, _, err := t.i.value(n)
	if err != nil {
		return nil, err
	}
	var means []float64
	for at := 0; at+width <= len(x.Data); at += width {
		sum := 0.0
		for _, v := range x.Data[at:][:width] {
			sum += float64(v * v)
		}
		means = append(means, sum/float64(width))
	}
	return means, nil
}

const (
	// chanceOfShift is the chance, at most, of calling rows of a healthy engine off.
	chanceOfShift = 1e-9
	// leastGroups is from how many groups of rows a standard error is taken.
	leastGroups = 12
)

// common returns how much too large groups of rows are together, and how much chance may make of that. Of independent
// numbers d within ±h that are as often up as down, Σ d/h² / Σ 1/h² is beyond √(2·ln(2/p) / Σ 1/h²) with a chance of at most
// p (Hoeffding, 1963); of many it is seldom beyond scaleSigmas standard errors. Steps that all elements share, whatever their
// row, may add scaleUnits units of float32.
func common(groups []shift) (by, allowed float64) {
	var all shift
	for i := range groups {
		groups[i] = groups[i].row()
		all.add(groups[i])
	}
	by = all.by / all.weight
	squares := 0.0
	for _, g := range groups {
		d := g.by - float64(g.weight*by)
		squares += float64(d * d)
	}
	allowed = math.Sqrt(2 * math.Log(2/chanceOfShift) / all.weight)
	if len(groups) >= leastGroups {
		allowed = min(allowed, scaleSigmas*math.Sqrt(squares)/all.weight)
	}
	return by, allowed + scaleUnits*0x1p-24
}

// shifted says why free arithmetic does not explain an entry that it might: together with the others of its form that do not
// follow transformers, it is off by a factor. It is empty where that is not so.
func (t *trial) shifted(others map[order.Node]*explanations, x *explanations) string {
	all := shifts{}
	for of, s := range x.shifts {
		all.add(of, s)
	}
	nodes := slices.SortedFunc(maps.Keys(others), func(a, b order.Node) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Entry, b.Entry))
	})
	for _, n := range nodes { // in their order, since a sum depends on it
		if o := others[n]; n != t.node && len(o.left[string(Strict)]) > 0 {
			for of, s := range o.shifts {
				all.add(of, s)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	var groups []shift
	for _, of := range slices.SortedFunc(maps.Keys(all), func(a, b alike) int {
		return cmp.Or(cmp.Compare(a.entry, b.entry), cmp.Compare(a.same, b.same))
	}) {
		groups = append(groups, all[of])
	}
	by, allowed := common(groups)
	if math.Abs(by) <= allowed {
		return ""
	}
	return fmt.Sprintf("one by one they might be rounding, but the rows of %s are together scaled by %.6g ± %.1g", op.Form(t.entry.Op), 1+by, allowed)
}

const (
	// A row is changed as a whole when at least wholeElements of its elements, and half of those that free arithmetic leaves a
	// choice, are not as in transformers' arithmetic: a number that they share is another.
	wholeElements = 2
	// rarest is the least share of rows in which rounding such a number otherwise changes some element: it is 0.9 or so of
	// those that have a choice.
	rarest = 0.2
)

// wholly counts the rows that are changed as a whole; open are the elements with a choice.
func (x *explanations) wholly(open []int) (n int) {
	changed := map[int]int{}
	for _, i := range x.left[string(Strict)] {
		changed[i/x.width]++
	}
	free := map[int]int{}
	for _, i := range open {
		free[i/x.width]++
	}
	for row, c := range changed {
		if c >= wholeElements && 2*c >= free[row] {
			n++
		}
	}
	return n
}

// lonely reports whether whole rows of the entry are changed and hardly any of other entries are at all, which no arithmetic
// does that rounds a number of every row otherwise. k of N rows, or fewer, have a chance of at most exp(−N·D(k/N ‖ rarest))
// (Chernoff).
func (t *trial) lonely(others map[order.Node]*explanations, x *explanations) bool {
	if _, softmax := t.entry.Op.(op.Softmax); saturates(t.entry.Op) && !softmax || x.whole == 0 {
		return false
	}
	changed, rows := 0, 0
	count := func(x *explanations) {
		k := x.rows(x.left[string(Strict)])
		changed, rows = changed+k, rows+max(x.slack, k)
	}
	count(x)
	for node, o := range others {
		if node != t.node {
			count(o)
		}
	}
	share := float64(changed) / float64(rows)
	divergence := share*math.Log(share/rarest) + (1-share)*math.Log((1-share)/(1-rarest))
	return share < rarest && float64(rows)*divergence >= improbable
}
