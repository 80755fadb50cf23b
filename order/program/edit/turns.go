package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// parted are views that steps have of parts of a result, all of one shape: where each begins, from the first on.
type parted struct {
	program.Var // the first
	first       []int
}

// parted returns the parts of a result that are read in one shape: two or three parts, at equal distances.
func (t *StepIndex) parted(step int) (all []parted) {
	for i := range t.Steps {
		for _, v := range t.Steps[i].Args {
			if v.Step != step || len(v.Shape) == 0 || v.Last() < 2 || v.Stride[len(v.Stride)-1] < 1 {
				continue
			}
			k := slices.IndexFunc(all, func(o parted) bool { return slices.Equal(o.Shape, v.Shape) && slices.Equal(o.Stride, v.Stride) })
			if k < 0 {
				k = len(all)
				all = append(all, parted{Var: v})
			}
			if !slices.Contains(all[k].first, v.Off) {
				all[k].first = append(all[k].first, v.Off)
			}
		}
	}
	for k := range all {
		slices.Sort(all[k].first)
	}
	return slices.DeleteFunc(all, func(o parted) bool {
		n := len(o.first)
		return n < 2 || n > 3 || n == 3 && o.first[2]-o.first[1] != o.first[1]-o.first[0]
	})
}

// turned returns the first elements of the parts, and the stride within a part, for the other layout of the parts:
// contiguous parts become interleaved or, with parts, interleaved parts become contiguous. ok is false if the parts
// have neither layout.
func (o parted) turned(parts bool) (first []int, stride int, ok bool) {
	n, by, own := len(o.first), o.first[1]-o.first[0], o.Stride[len(o.Stride)-1]
	if parts {
		stride, ok = by, own == n*by
	} else {
		stride, ok = n*own, by == own*o.Last()
	}
	for j := range n {
		at := o.first[0] + j*own
		if parts {
			at = o.first[0] + j*o.Last()*by
		}
		first = append(first, at)
	}
	return first, stride, ok
}

// Turns are the edits by which parts of a result are halves that were read by turns, or are read by turns that were halves. By is 1 for
// halves, N the number of parts.
func (t Edits) Turns() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		for _, o := range t.parted(i) {
			for by, parts := range []bool{false, true} {
				if _, _, ok := o.turned(parts); ok {
					d := Edit{Class: Mapped, At: []Place{t.PlaceOf(i)}, Map: Map{Kind: Turn, N: len(o.first), By: by}}
					if !slices.ContainsFunc(all, func(e Edit) bool { return e.At[0] == d.At[0] && e.Map == d.Map }) {
						all = append(all, d)
					}
				}
			}
		}
	}
	return all
}

// crossed returns the first element of the part to read in place of each part: by parts further on, cyclically.
func (o parted) crossed(by int) []int {
	return append(slices.Clone(o.first[by:]), o.first[:by]...)
}

// Crossed returns edits that cyclically exchange the separately read parts of a result, for example halves.
func (t Edits) Crossed() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		for _, o := range t.parted(i) {
			for by := 1; by < len(o.first); by++ {
				d := Edit{Class: Mapped, At: []Place{t.PlaceOf(i)}, Map: Map{Kind: Cross, N: len(o.first), By: by}}
				if !slices.ContainsFunc(all, func(e Edit) bool { return e.At[0] == d.At[0] && e.Map == d.Map }) {
					all = append(all, d)
				}
			}
		}
	}
	return all
}

// turn reads the parts of a result by turns, or as halves, and those of the same input of the passes before; it reports whether there are
// any.
func turn(e *Editor, t *StepIndex, step int, m Map) bool {
	some := turnOne(e, t, step, m)
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Prim == program.Input && t.Steps[step].Prim == program.Input && t.leaf[s.Index()] == t.leaf[t.Steps[step].Index()]+Before {
			some = turnOne(e, t, i, m) || some
		}
	}
	return some
}

func turnOne(e *Editor, t *StepIndex, step int, m Map) bool {
	some := false
	for _, o := range t.parted(step) {
		first, stride, ok := o.turned(m.By == 1)
		if m.Kind == Cross {
			first, stride, ok = o.crossed(m.By), o.Stride[len(o.Stride)-1], true
		}
		if !ok || len(o.first) != m.N {
			continue
		}
		for i := range t.Steps {
			for k, v := range t.Steps[i].Args {
				if v.Step != step || !slices.Equal(o.Shape, v.Shape) || !slices.Equal(o.Stride, v.Stride) {
					continue
				}
				v.Off = first[slices.Index(o.first, v.Off)]
				v.Stride = slices.Clone(v.Stride)
				v.Stride[len(v.Stride)-1] = stride
				s := &e.Steps[i]
				s.Args = slices.Clone(s.Args)
				s.Args[k] = v
				e.changed[i], some = true, true
			}
		}
	}
	return some
}
