package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// applied yields operations of the order in places where they do not belong: before an input of the program, or after the result. These are operations of
// the layer, and operations without weights that only other layers have. [again] yields the entry's own operation after the result.
func applied(s *search) iter.Seq[Mistake] {
	t := s.first.signed(s.m)
	own := s.m.List.Entries[s.first.Node.Entry].Name
	places := leafSteps(t, program.Input)
	if len(places) > maxPlaces {
		places = nil
	}
	seen := map[string]bool{}
	var all []Mistake
	for k := range s.m.List.Entries {
		other := &s.m.List.Entries[k]
		name := order.NameOf(other.Name)
		role, target := name.Role(), order.NameOf(own)
		if seen[role] || name.Within() && !name.SameLayer(target) && (s.m.List.Index(name.Beside(target).String()) >= 0 || len(other.Weights) > 0) || !insertable(s.subject, other, s.first.Node.Pass) {
			continue
		}
		seen[role] = true
		m := Mistake{Kind: "operation.taken-of-result", Place: role, Of: operationTerm(other), For: tensorTerm(role), Source: other.Name, Edit: placed(edit.Place{Arg: result})}
		if role != order.NameOf(own).Role() {
			all = append(all, m)
		}
		for _, at := range places {
			m.Kind, m.By, m.Edit, m.Rounding = "operation.taken-first", s.value(s.first, t.Result(at)), placed(t.PlaceOf(at)), ""
			all = append(all, m)
			if m.By == tensorTerm(other.Inputs[0].Name) && !movesOnly(s) {
				all = append(all, overwritten(other, m)...)
			}
			if m.Rounding = Unstored; s.first.Call.DType != hooks.F32 {
				all = append(all, m)
			}
		}
	}
	return slices.Values(all)
}

// mostInner is the largest number of last steps that are left out of an operation.
const mostInner = 2

// overwritten are the mistakes of an operation that works in place: its input is overwritten by the value before the last steps of the operation, and the
// input is read again. m is the mistake with the whole operation.
func overwritten(other *order.Entry, m Mistake) []Mistake {
	first := m
	first.Kind, first.Of, first.By = "operand.overwritten", m.By, m.Of
	all := []Mistake{first}
	for n := 2; n <= mostInner; n++ {
		first.Kind, first.N = "operand.overwritten-earlier", n
		all = append(all, first)
	}
	return all
}

// again yields the entry's own operation applied to its result: the operation is applied twice.
func again(s *search) iter.Seq[Mistake] {
	own := &s.m.List.Entries[s.first.Node.Entry]
	var all []Mistake
	for _, at := range []int{result, unrounded} {
		if insertable(s.subject, own, s.first.Node.Pass) {
			all = append(all, Mistake{Kind: "operation.twice", Place: order.NameOf(own.Name).Role(), Of: operationTerm(own), Source: own.Name, Edit: placed(edit.Place{Arg: at})})
		}
	}
	return slices.Values(all)
}

// maxPlaces limits the inputs of a program: with more inputs, no operation is tried before an input.
const maxPlaces = 4

// insertable reports whether an operation keeps the number of elements of its first input, has no matrix and reads no earlier pass.
func insertable(s *subject, e *order.Entry, pass int) bool {
	if e.Op == nil || len(e.Inputs) == 0 || e.Inputs[0].Prev || slices.ContainsFunc(e.Inputs, func(r order.Ref) bool { return r.Prev }) {
		return false
	}
	if _, own := e.Op.(program.Own); own {
		return false
	}
	for _, w := range e.Weights {
		if len(w.Shape) != 1 {
			return false
		}
	}
	in := s.m.List.Index(e.Inputs[0].Name)
	return in >= 0 && program.Size(s.shapeOf(e.Inputs[0], pass)) == program.Size(e.Size(s.m.Passes[pass], s.m.List.Config.SlidingWindow))
}

// shapeOf is the shape of an input of an operation.
func (s *subject) shapeOf(r order.Ref, pass int) []int {
	shape := s.m.List.Entries[s.m.List.Index(r.Name)].Size(s.m.Passes[pass], s.m.List.Config.SlidingWindow)
	if r.Index != nil {
		return shape[1:]
	}
	return shape
}

// inserted applies an operation of the entry's layer at the place of a mistake: with the result rounded or not, whole or without its last steps. It is nil
// if the operation does not fit the entry.
func inserted(s *subject, e *Entry, m Mistake) *program.Edited {
	n := s.m.List.Index(s.here(m.Source, e))
	for _, in := range e.Inputs { // the entry's layer has no such operation: look in the layers of the inputs
		if n < 0 {
			n = s.m.List.Index(order.NameOf(m.Source).Beside(order.NameOf(s.m.List.Entries[in.Entry].Name)).String())
		}
	}
	if n < 0 {
		n = s.m.List.Index(m.Source)
	}
	if n < 0 {
		return nil
	}
	o, ok := operationFor(s, e, &s.m.List.Entries[n], e.Node.Pass)
	if !ok {
		return nil
	}
	if o.unstored, o.inner = m.Rounding == Unstored, m.N; m.Kind == "operand.overwritten" {
		o.inner = 1
	}
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var { return taken(s, ed, o, v) })
}

// operation is an operation of the order, with the inputs of a pass and the weights. The first input is left out.
type operation struct {
	entry   *order.Entry
	pass    int
	rest    []program.Value
	weights []program.Rows

	unstored bool // the result is not rounded
	inner    int  // how many of the last steps are left out
}

// operationFor reads the inputs and weights of an operation; ok is false if an input was not captured.
func operationFor(s *subject, e *Entry, other *order.Entry, pass int) (o operation, ok bool) {
	o = operation{entry: other, pass: pass}
	for _, r := range other.Inputs[1:] {
		v, ok := s.tensor(e, source{name: r.Name, item: r.Index, pass: pass - e.Node.Pass})
		if !ok {
			return o, false
		}
		o.rest = append(o.rest, v)
	}
	for _, w := range other.Weights {
		if k := slices.IndexFunc(e.Weights, func(o order.Weight) bool { return o.Name == w.Name }); k >= 0 {
			o.weights = append(o.weights, e.Call.W[k])
			continue
		}
		rows, err := s.m.Weights(w)
		if s.failed(err) {
			return o, false
		}
		o.weights = append(o.weights, rows)
	}
	return o, true
}

// taken applies an operation to a value with as many elements as the operation's first input. The result has the shape of the value.
func taken(s *subject, ed *edit.Editor, o operation, v program.Var) program.Var {
	x, ok := edit.As(v, s.shapeOf(o.entry.Inputs[0], o.pass))
	if !ok {
		return ed.Fail("shapes")
	}
	in := []program.Var{x}
	for _, r := range o.rest {
		in = append(in, ed.Other(r))
	}
	var w []program.Var
	for _, r := range o.weights {
		w = append(w, ed.OtherRows(r))
	}
	first := ed.Len()
	y := ed.Apply(o.entry.Op, o.entry.Op.Kind(), o.entry.Size(s.m.Passes[o.pass], s.m.List.Config.SlidingWindow), in, w)
	if o.inner > 0 {
		if y, ok = ed.Inner(first, y, o.inner); !ok {
			return ed.Fail("step")
		}
	}
	if !o.unstored {
		y = ed.R(y)
	}
	y = byToken(s, ed, y, o.entry)
	if y, ok = edit.As(y, x.Shape); !ok {
		return ed.Fail("shapes")
	}
	if y, ok = edit.As(ed.Cat(0, y), v.Shape); !ok {
		return ed.Fail("shapes")
	}
	return y
}

// byToken moves the tokens of an operation's result to the axis that has the tokens in its input.
func byToken(s *subject, ed *edit.Editor, y program.Var, e *order.Entry) program.Var {
	in := s.m.List.Entries[s.m.List.Index(e.Inputs[0].Name)].Axes
	if e.Inputs[0].Index != nil && in != "" {
		in = in[1:]
	}
	from, to := strings.IndexByte(e.Axes, order.AxisToken), strings.IndexByte(in, order.AxisToken)
	if from < 0 || to < 0 || from == to || len(e.Axes) != len(y.Shape) || to >= len(e.Axes) {
		return y
	}
	axes := make([]int, 0, len(e.Axes))
	for a := range e.Axes {
		if a != from {
			axes = append(axes, a)
		}
	}
	return ed.Cat(0, ed.Permute(y, slices.Insert(axes, to, from)...))
}

// partly yields the entry's own operation on the first channels; the other channels stay unchanged. The further inputs give every n-th channel, or the
// first channels of each half, as the tables of a rotary embedding of fewer channels do. The map of the mistake's edit has the n, or 0 for halves.
func partly(s *search) iter.Seq[Mistake] {
	entry := &s.m.List.Entries[s.first.Node.Entry]
	var all []Mistake
	if !insertable(s.subject, entry, s.first.Node.Pass) || len(entry.Weights) > 0 || len(s.first.Inputs) != len(entry.Inputs) {
		return slices.Values(all)
	}
	width := s.first.Program.Out.Last()
	for rank, n := range []int{width / 2, width / 4, 3 * width / 4} {
		if n < 2 || width%n != 0 && rank < 2 {
			continue
		}
		at := edit.Edit{At: []edit.Place{{Arg: result}}}
		if width%n == 0 {
			every := at
			every.Map.By = width / n
			all = append(all, Mistake{Kind: "channels.first-alone", N: n, M: width, Edit: every.Text()})
		}
		all = append(all, Mistake{Kind: "channels.first-alone", N: n, M: width, Edit: at.Text()})
	}
	return slices.Values(all)
}

// partOf applies the entry's own operation to the first channels.
func partOf(s *subject, e *Entry, m Mistake) *program.Edited {
	entry := &s.m.List.Entries[e.Node.Entry]
	ed, n := edit.NewEditor(e.Program), m.N
	d, ok := s.edit(m)
	out := e.Program.Out
	last, width := len(out.Shape)-1, out.Last()
	var in []program.Var
	for i := range e.Program.Steps {
		if e.Program.Steps[i].Prim != program.Input {
			continue
		}
		v := e.Program.Result(i)
		if !ok || v.Last()%width != 0 || e.Program.Steps[i].Index() != len(in) {
			return nil
		}
		a := len(v.Shape) - 1
		switch {
		case v.Last() != width || len(in) == 0:
			v = ed.Slice(ed.Split(v, a, v.Last()/width), a+1, 0, n)
		case d.Map.By > 0:
			v = ed.Take(ed.Split(v, a, n), a+1, 0)
		default:
			v = ed.Cat(a, ed.Slice(v, a, 0, n/2), ed.Slice(v, a, width/2, width/2+n/2))
		}
		if ed.Err() != nil {
			return nil
		}
		in = append(in, ed.Cat(len(v.Shape)-1, v))
	}
	if len(in) == 0 || len(in) != len(entry.Inputs) {
		return nil
	}
	shape := slices.Clone(out.Shape)
	shape[last] = n
	done := ed.R(ed.Apply(entry.Op, entry.Op.Kind(), shape, in, nil))
	first := slices.IndexFunc(e.Program.Steps, func(s program.Step) bool { return s.Prim == program.Input && s.Index() == 0 })
	whole := e.Program.Result(first)
	rest, ok := edit.As(ed.Cat(len(whole.Shape), ed.Split(whole, len(whole.Shape)-1, whole.Last()/width)), out.Shape)
	if !ok {
		return nil
	}
	ed.Return(ed.Cat(last, done, ed.Slice(rest, last, n, width)))
	return ended(ed)
}
