package diagnose

import (
	"math"
	"strconv"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// mostAtOnce is how many indexes of an axis, and which sizes of blocks, are tried.
const mostAtOnce = 64

// indexRules are the indexes of an axis of a size whose values a port has at index i.
var indexRules = map[Kind]func(m Mistake, i, size int) int{
	"value.of-one-index":    func(m Mistake, _, _ int) int { return m.N },
	"value.of-last-index":   func(_ Mistake, _, size int) int { return size - 1 },
	"value.of-index-before": func(_ Mistake, i, _ int) int { return max(i-1, 0) },
	"value.of-index-after":  func(_ Mistake, i, size int) int { return min(i+1, size-1) },
	"value.of-block-index":  func(m Mistake, i, size int) int { return min(i-i%max(m.N, 1)+m.K, size-1) },
}

// oneIndexed describes values within the operation that have the right values of other indexes of an axis, by a rule. Examples are the scale of a single
// token for all tokens, the scale of the first token of each block, and the coefficient of the first stream for all streams.
func oneIndexed(x *difference) *Description {
	for _, inner := range x.inners() {
		first := &inner.all[0]
		for a := range first.shape {
			for _, m := range indexesOf(inner.all, a) {
				if !hasIndexes(inner.all, a, m) {
					continue
				}
				m.Of, m.Axis, m.M, m.Edit = inner.of, strconv.Itoa(a), a, placed(inner.at)
				if len(first.axes) == len(first.shape) {
					m.Axis = axisWords(first.axes[a])
				}
				d := &Description{Kind: "described.index", Of: inner.of, By: axisName("", m.Axis), Values: []float64{float64(m.N)}}
				for n := range inner.all {
					d.Elements += len(inner.all[n].want)
				}
				d.Explained = d.Elements
				if m.Kind != "value.of-one-index" {
					d.Kind, d.Values = "described.last-index", nil
				}
				x.draft(d).proposes, x.draft(d).quiet = []Mistake{m}, !repeatsOne(m)
				return d
			}
		}
	}
	return nil
}

// repeatsOne reports whether a mistake repeats the value of a single index.
func repeatsOne(m Mistake) bool {
	return m.Kind == "value.of-one-index" || m.Kind == "value.of-last-index"
}

// indexesOf lists rules for an axis: the last index, the first [mostAtOnce] indexes that all values have, the neighbour, and an index of each block. The
// list is empty if the axis has size 1 in all values.
func indexesOf(all []observed, axis int) (rules []Mistake) {
	least, most := math.MaxInt, 0
	for n := range all {
		least, most = min(least, all[n].shape[axis]), max(most, all[n].shape[axis])
	}
	if most < 2 {
		return nil
	}
	rules = []Mistake{{Kind: "value.of-last-index"}}
	for i := range min(least, mostAtOnce) {
		rules = append(rules, Mistake{Kind: "value.of-one-index", N: i})
	}
	rules = append(rules, Mistake{Kind: "value.of-index-before"}, Mistake{Kind: "value.of-index-after"})
	for n := 2; n < min(most, mostAtOnce); n++ {
		for k := range n {
			rules = append(rules, Mistake{Kind: "value.of-block-index", N: n, K: k})
		}
	}
	return rules
}

// hasIndexes reports whether the port has the right values of other indexes of an axis, by a rule, and whether enough elements are wrong for the rule.
func hasIndexes(all []observed, axis int, m Mistake) bool {
	rule, wrong := indexRules[m.Kind], 0
	for n := range all {
		o := &all[n]
		stride, size := program.Size(o.shape[axis+1:]), o.shape[axis]
		for i, want := range o.want {
			own := i / stride % size
			from := i + (rule(m, own, size)-own)*stride
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

// ofRuledIndexes gives a value the values of other indexes of an axis, by a rule.
func ofRuledIndexes(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		if m.M < 0 || m.M >= len(v.Shape) {
			return ed.Fail("shapes")
		}
		size := v.Shape[m.M]
		if repeatsOne(m) {
			at := indexRules[m.Kind](m, 0, size)
			if at < 0 || at >= size {
				return ed.Fail("shapes")
			}
			return ed.Expand(ed.Slice(v, m.M, at, at+1), v.Shape)
		}
		from := program.Value{Shape: v.Shape, Data: make([]float64, program.Size(v.Shape))}
		stride := program.Size(v.Shape[m.M+1:])
		for i := range from.Data {
			from.Data[i] = float64(indexRules[m.Kind](m, i/stride%size, size))
		}
		return ed.Gather(m.M, v, ed.Other(from))
	})
}
