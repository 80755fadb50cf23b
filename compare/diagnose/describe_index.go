package diagnose

import (
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	mostAtOnce = 64 // indexes of an axis that are tried
	lastIndex  = -1
)

// oneIndexed describes values within the operation that repeat the right value of a single index at all indexes of an axis. Examples are
// the scale of a single token for all tokens, and the coefficient of the first stream for all streams.
func oneIndexed(x *difference) *Description {
	for _, inner := range x.inners() {
		first := &inner.all[0]
		for a := range first.shape {
			for _, index := range indexesOf(inner.all, a) {
				if !hasOneIndex(inner.all, a, index) {
					continue
				}
				counts := strconv.Itoa(a)
				if len(first.axes) == len(first.shape) {
					counts = axisWords(first.axes[a])
				}
				d := &Description{Kind: "described.index", Of: inner.of, By: axisName("", counts)}
				for n := range inner.all {
					d.Elements += len(inner.all[n].want)
				}
				d.Explained = d.Elements
				m := Mistake{Kind: "value.of-one-index", Of: inner.of, Axis: counts, N: index, M: a, Edit: placed(inner.at)}
				if d.Values = []float64{float64(index)}; index == lastIndex {
					d.Kind, d.Values, m.Kind, m.N = "described.last-index", nil, "value.of-last-index", 0
				}
				x.draft(d).proposes = []Mistake{m}
				return d
			}
		}
	}
	return nil
}

// indexesOf lists the last index of an axis, then the first [mostAtOnce] indexes that all values have. The list is empty if the axis has
// size 1 in all values.
func indexesOf(all []observed, axis int) (indexes []int) {
	least := math.MaxInt
	for n := range all {
		least = min(least, all[n].shape[axis])
	}
	most := slices.MaxFunc(all, func(a, b observed) int { return a.shape[axis] - b.shape[axis] }).shape[axis]
	if most < 2 {
		return nil
	}
	indexes = []int{lastIndex}
	for i := range min(least, mostAtOnce) {
		indexes = append(indexes, i)
	}
	return indexes
}

// hasOneIndex reports whether the port repeats the right value of a single index at all indexes of an axis, and whether enough elements
// are wrong for the repetition.
func hasOneIndex(all []observed, axis, index int) bool {
	wrong := 0
	for n := range all {
		o := &all[n]
		stride, size := product(o.shape[axis+1:]), o.shape[axis]
		at := index
		if index == lastIndex {
			at = size - 1
		}
		for i, want := range o.want {
			from := i + (at-i/stride%size)*stride
			if silent(o, i) {
				continue
			}
			if !(math.Abs(want-o.value[from]) <= off(o, i)+0x1p-21*math.Abs(want)) {
				return false
			}
			if math.Abs(want-o.value[i]) > 4*off(o, i)+0x1p-20*math.Abs(want) {
				wrong++
			}
		}
	}
	return wrong >= shownElements/2
}

// ofOneIndex repeats a single index of a value at all indexes of an axis.
func ofOneIndex(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		shape := v.Shape
		if m.M < 0 || m.M >= len(shape) {
			return ed.Fail("shapes")
		}
		at := m.N
		if m.Kind == "value.of-last-index" {
			at = shape[m.M] - 1
		}
		if at < 0 || at >= shape[m.M] {
			return ed.Fail("shapes")
		}
		return ed.Expand(ed.Slice(v, m.M, at, at+1), shape)
	})
}
