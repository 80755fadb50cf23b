package diagnose

import (
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// A kernel that works in blocks writes or reads a block in the wrong place: a block of the result, or of an operand, has the elements of other indexes of
// an axis. The axis counts channels, heads or keys, or tokens, by their position in the sequence; the indexes are the same in all entries.

// mostMovedRuns is the largest number of runs of indexes that are moved.
const mostMovedRuns = 64

// otherIndexes describes results, or values within the operation, that have at some indexes of an axis the elements of other indexes.
func otherIndexes(x *difference) *Description {
	part := x.part()
	all := []inner{{of: theResult, at: edit.Place{Arg: result}, all: x.results}}
	for _, v := range x.inners() {
		if !v.number {
			all = append(all, v)
		}
	}
	for n, v := range all {
		axes := v.all[0].axes
		for k := range v.all[0].shape {
			m := moved{value: v, axis: k, letter: order.AxisChannel}
			if axes != "" {
				m.letter = axes[k]
			} else if k < len(v.all[0].shape)-1 {
				continue
			}
			if n == 0 { // the rest of the result is right
				m.only = part.without(m.letter)
			}
			if d := m.describe(x); d != nil {
				return d
			}
		}
	}
	return nil
}

// moved is a value with an axis along which elements may come from other indexes.
type moved struct {
	value  inner
	axis   int
	size   int // of the axis, in all entries
	letter byte
	only   Spots   // the part of the result that is looked at
	parts  []*tile // of the entries, nil for all of a value
}

// describe finds the indexes whose elements come from other indexes. It is nil if a wrong index has no source.
func (m *moved) describe(x *difference) *Description {
	for n := range m.value.all {
		m.parts = append(m.parts, m.only.of(x.subject, m.value.all[n].e))
	}
	wrong, each := map[int]int{}, map[int]int{}
	for n := range m.value.all {
		o := &m.value.all[n]
		if len(o.shape) <= m.axis || o.shape[m.axis] < 2 && m.letter != order.AxisToken {
			return nil
		}
		first, along := firstIndex(x.search, o, m.letter), o.along(m.axis)
		m.size = max(m.size, first+o.shape[m.axis])
		for i := range o.want {
			if m.looks(n, i) {
				each[first+along(i)]++
				if wrongElement(o, i) {
					wrong[first+along(i)]++
				}
			}
		}
	}
	if len(wrong) == 0 || len(wrong) == m.size && m.size > 1 || len(wrong)*m.size*len(m.value.all[0].want)/max(m.value.all[0].shape[m.axis], 1) > mostCompared {
		return nil
	}
	from := make([]int, m.size)
	for i := range from {
		if from[i] = i; wrong[i] == 0 {
			continue
		}
		if each[i] < leastAChannel || 2*wrong[i] < each[i] {
			return nil
		}
		if from[i] = m.source(x, i, from[:i]); from[i] < 0 {
			return nil
		}
	}
	var runs []sourceRun
	for a := 0; a < m.size; {
		b := run(from, a)
		if from[a] != a {
			runs = append(runs, sourceRun{From: a, To: b, Is: from[a]})
		}
		a = b
	}
	if len(runs) > mostMovedRuns {
		return nil
	}
	d := &Description{Kind: "described.indexes", Of: m.value.of, By: axisWords(m.letter), Explained: len(wrong), Elements: len(wrong)}
	for _, r := range runs {
		d.Cases = oneMore(d.Cases, endsWords(r.From, r.To)+fromWords+endsWords(r.Is, r.Is+r.To-r.From))
	}
	rank := len(m.value.all[0].shape)
	x.draft(d).proposes = []Mistake{{
		Kind: "indexes.others", Of: m.value.of, Axis: axisWords(m.letter), K: rank - m.axis, Runs: makeRuns(runs...), Only: m.only, Edit: placed(m.value.at),
	}}
	return d
}

// looks reports whether an element of an entry is in the part of the result that is looked at, by its indexes of the other axes.
func (m *moved) looks(entry, i int) bool { return m.parts[entry] == nil || m.parts[entry].has(i) }

// source finds the index of the right value with the elements of a wrong index, in all entries; −1 for none. If the index before is wrong too, source first
// tries the index after its source.
func (m *moved) source(x *difference, i int, before []int) int {
	if i > 0 && before[i-1] != i-1 && m.has(x, i, before[i-1]+1) {
		return before[i-1] + 1
	}
	for k := range m.size {
		if k != i && m.has(x, i, k) {
			return k
		}
	}
	return -1
}

// has reports whether the elements of index i are those of index k of the right value, in every entry that has i.
func (m *moved) has(x *difference, i, k int) bool {
	for n := range m.value.all {
		o := &m.value.all[n]
		first := firstIndex(x.search, o, m.letter)
		stride, size := program.Size(o.shape[m.axis+1:]), o.shape[m.axis]
		at, from := i-first, k-first
		if at < 0 || at >= size {
			continue
		}
		if from < 0 || from >= size {
			return false
		}
		for block := 0; block < len(o.want); block += stride * size {
			for c := range stride {
				to := block + at*stride + c
				if m.looks(n, to) && !silent(o, to) && !o.has(to, o.value[block+from*stride+c]) {
					return false
				}
			}
		}
	}
	return true
}

// ofOtherIndexes puts elements of other indexes of an axis in the places of some indexes. Indexes of tokens are positions. It is nil if the pass lacks a
// source.
func ofOtherIndexes(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		axis, first := len(v.Shape)-m.K, 0
		if m.K < 1 || axis < 0 {
			return ed.Fail("axis")
		}
		if m.Axis == axisWords(order.AxisToken) {
			first = s.m.Passes[e.Node.Pass].Past
		}
		var all []program.Var
		at := 0
		for _, r := range m.Runs.list() {
			from, to, is := r.From-first, r.To-first, r.Is-first
			if cut := at - from; cut > 0 {
				from, is = from+cut, is+cut
			}
			if to = min(to, v.Shape[axis]); from >= to {
				continue
			}
			if is < 0 || is+to-from > v.Shape[axis] {
				return ed.Fail("index")
			}
			if at < from {
				all = append(all, ed.Slice(v, axis, at, from))
			}
			all = append(all, ed.Slice(v, axis, is, is+to-from))
			at = to
		}
		if len(all) == 0 {
			return v
		}
		if at < v.Shape[axis] {
			all = append(all, ed.Slice(v, axis, at, v.Shape[axis]))
		}
		return ed.Cat(axis, all...)
	})
}
