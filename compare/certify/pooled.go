package certify

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Free arithmetic allows a row half a unit at every step, and all elements of a norm's row share some of these steps: one
// row alone may be too large by all that its bound allows. Many rows may not, being rounded each by itself: what they have in
// common is no rounding. This is the scale of [fit] for a form of operation, over all its entries.

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
	if !(w > 0) || !measure.Finite(w) {
		return shift{}
	}
	return shift{float64(by * w), 1 / most, w}
}

// shifts are those of groups of rows that may well be rounded alike: by the number that decides how, and by entry, where rows
// behind the same weights share what was made of them.
type shifts struct{ numbers, entries map[uint64]shift }

func newShifts() shifts { return shifts{map[uint64]shift{}, map[uint64]shift{}} }

// add takes in what is known of more rows of a group.
func add(groups map[uint64]shift, of uint64, more shift) {
	if more.weight > 0 {
		sum := groups[of]
		sum.add(more)
		groups[of] = sum
	}
}

func (s shifts) add(o shifts) {
	for of, more := range o.numbers {
		add(s.numbers, of, more)
	}
	for of, more := range o.entries {
		add(s.entries, of, more)
	}
}

// shift fits a scale to some elements, as [fit] does, where op is far from saturation.
func (j *judged) shift(from, to int, o op.Op) (s shift) {
	for i := from; i < to; i++ {
		x, y := j.x.Data[i], j.y.Data[i]
		w, e, unit := floats.Round(j.d, x), j.x.Bound[i], lastPlace(j.d, x)
		b := e + unit/2
		if w == 0 || !measure.Finite(w) || !measure.Finite(y) || !measure.Finite(b) || b <= 0 || j.masked(i) || !straight(o, w) {
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
	s, saturates := o.(op.Saturating)
	return !saturates || s.Unsaturated(y)
}

// shifts takes the rows of an entry, j being the judgement in free arithmetic and keys the numbers that decide.
func (t *trial) shifts(j *judged, keys []uint64, width int) shifts {
	all := newShifts()
	o := t.entry.Op
	alone := len(t.cut.Steps) == 1 // nothing but the operation itself is computed
	share, entry := op.Shares(o)
	if alone && share == op.SharedElement {
		for i, x := range j.x.Data {
			add(all.numbers, math.Float64bits(math.Abs(floats.Round(j.d, x))), j.shift(i, i+1, o).row())
		}
		return all
	}
	shared := !alone || entry // weights behind which all rows of the entry are
	for row, key := range keys {
		at := row * width
		if share == op.SharedSum && !straight(o, slices.Max(j.x.Data[at:][:width])) {
			continue
		}
		s := j.shift(at, at+width, o).row()
		add(all.numbers, key, s)
		if shared {
			add(all.entries, uint64(t.node.Entry), s)
		}
	}
	return all
}

// deciding returns for each row of an entry the number on which it depends how its shared steps are rounded: of a norm the
// mean square of what was normed, of a softmax its sum, of a statistic its value. Where it is not known it is a hash of the row,
// since rows that are the same are rounded alike.
func (t *trial) deciding(j *judged, width int) ([]uint64, error) {
	var squares []float64
	share, _ := op.Shares(t.entry.Op)
	if share == op.SharedMeanSquare && len(t.cut.Steps) == 1 {
		var err error
		if squares, err = t.meanSquares(width); err != nil {
			return nil, err
		}
	}
	number := func(x float64) uint64 { return math.Float64bits(floats.Round(j.engine.DType, x)) }
	var keys []uint64
	for at := 0; at+width <= len(j.x.Data); at += width {
		row := j.x.Data[at:][:width]
		key := hash(row)
		switch share {
		case op.SharedMeanSquare:
			if at/width < len(squares) {
				key = number(squares[at/width])
			}
		case op.SharedSum: // it is the reciprocal of the largest probability
			key = number(1 / slices.Max(row))
		case op.SharedValue:
			key = number(math.Abs(row[0]))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// hash is FNV-1a of the numbers' bits.
func hash(row []float64) uint64 {
	h := fnv.New64a()
	var bits [8]byte
	for _, x := range row {
		binary.LittleEndian.PutUint64(bits[:], math.Float64bits(x))
		h.Write(bits[:]) // never fails
	}
	return h.Sum64()
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
	// bias is the share of a unit roundoff that inner roundings may leave on average: those of squares next to zero, where
	// float16 has few digits left, do not quite cancel.
	bias = 1.0 / 8
)

// common returns how much too large groups of rows are together, and how much chance may make of that. Of independent
// numbers d within ±h that are as often up as down, Σ d/h² / Σ 1/h² is beyond √(2·ln(2/p) / Σ 1/h²) with a chance of at most
// p (Hoeffding, 1963); of many it is seldom beyond scaleSigmas standard errors. Steps that all elements share, whatever their
// row, may add scaleUnits units of float32.
func common(of map[uint64]shift) (by, allowed float64) {
	groups := make([]shift, 0, len(of))
	var all shift
	for _, key := range slices.Sorted(maps.Keys(of)) { // in some order, since sums depend on it
		g := of[key].row()
		all.add(g)
		groups = append(groups, g)
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

// sorted lists the nodes in the order of execution.
func sorted(of map[order.Node]*explanations) []order.Node {
	return slices.SortedFunc(maps.Keys(of), func(a, b order.Node) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Entry, b.Entry))
	})
}

// shifted says why free arithmetic does not explain an entry that it might: together with the others of its form that do not
// follow transformers, it is off by a factor, however rows are grouped. It is empty where that is not so.
func (t *trial) shifted(others map[order.Node]*explanations, x *explanations) string {
	all := newShifts()
	all.add(x.shifts)
	for _, n := range sorted(others) { // in their order, since a sum depends on it
		if o := others[n]; n != t.node && len(o.left[string(Strict)]) > 0 {
			all.add(o.shifts)
		}
	}
	if len(all.numbers) == 0 {
		return ""
	}
	by, allowed := common(all.numbers)
	if len(all.entries) > 0 {
		_, behind := common(all.entries)
		allowed = max(allowed, behind)
	}
	allowed += math.Ldexp(bias, -floats.Precision(t.i.env.DType))
	if !(math.Abs(by) > allowed) { // nor where it is no number
		return ""
	}
	return fmt.Sprintf("one by one they might be rounding, but the rows of %s are together scaled by %.6g ± %.1g", op.Form(t.entry.Op), 1+by, allowed)
}

const (
	// A row is changed as a whole when at least wholeElements of its elements, and a good part of those that free arithmetic
	// leaves a choice, are not as in an arithmetic: a number that they share is another.
	wholeElements = 2
	// rarest is the least share of numbers for which rounding them otherwise changes some element: it is 0.9 or so of those
	// that leave a choice.
	rarest = 0.2
)

// whole counts the rows in which an arithmetic leaves wholeElements, and one in so many of those with a choice.
func (x *explanations) whole(words string, oneIn int) (n int) {
	changed := map[int]int{}
	for _, i := range x.left[words] {
		changed[i/x.width]++
	}
	for row, c := range changed {
		if c >= wholeElements && oneIn*c >= x.choices[row] {
			n++
		}
	}
	return n
}

// lonely reports whether whole rows of the entry are changed and hardly any of other entries are at all, which no arithmetic
// does that rounds a number of every row otherwise. k of N different numbers, or fewer, have a chance of at most
// exp(−N·D(k/N ‖ rarest)) (Chernoff).
func (t *trial) lonely(others map[order.Node]*explanations, x *explanations) bool {
	if share, _ := op.Shares(t.entry.Op); saturates(t.entry.Op) && share != op.SharedSum || x.whole(string(Strict), 2) == 0 {
		return false
	}
	changed, all := map[uint64]bool{}, map[uint64]bool{}
	count := func(x *explanations) {
		maps.Copy(all, x.open)
		for _, i := range x.left[string(Strict)] {
			key := x.keys[i/x.width]
			changed[key], all[key] = true, true
		}
	}
	count(x)
	for _, o := range others {
		count(o)
	}
	n := float64(len(all))
	share := float64(len(changed)) / n
	divergence := share*math.Log(share/rarest) + (1-share)*math.Log((1-share)/(1-rarest))
	return share < rarest && n*divergence >= improbable
}
