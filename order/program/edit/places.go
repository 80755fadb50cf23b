package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// Indexes returns edits that move all readers of a part of a tensor to a different index: a different stream of a
// stack, a different layer's slice.
func (t Edits) Indexes() []Edit {
	var all []Edit
	var seen []program.Var
	look := func(v program.Var) {
		if t.Steps[v.Step].Prim == program.Number || slices.ContainsFunc(seen, func(o program.Var) bool { return samePart(o, v) }) {
			return
		}
		seen = append(seen, v)
		for axis, n := range t.Steps[v.Step].Shape {
			start, size := t.part(v, axis)
			if size >= n {
				continue
			}
			for other := 0; other+size <= n; other++ {
				if n > maxIndexes && (size < 2 || other%size != 0 && other+size != n) {
					continue // of a long axis only other parts of the same size: of keys for values, of the gate for what it multiplies
				}
				if other != start {
					all = append(all, Edit{Class: Index, At: []Place{t.PlaceOf(v.Step)}, Map: Map{Axis: axis, N: start, By: other, Other: size}})
				}
			}
		}
	}
	for _, i := range t.Firsts() {
		for _, v := range t.Steps[i].Args {
			look(v)
		}
		all = append(all, t.gathered(i)...)
	}
	look(t.Out)
	return all
}

// IndexesOfOne returns edits of a single index. An edit moves only one of several readers to a different index.
func (t Edits) IndexesOfOne() []Edit {
	var all []Edit
	for _, d := range t.Indexes() {
		if d.Map.Other != 1 {
			continue
		}
		var readers []Place
		for _, i := range t.Firsts() {
			if slices.ContainsFunc(t.Steps[i].Args, func(v program.Var) bool {
				return slices.Contains(t.Copies(d.At[0]), v.Step) && t.shows(v, v.Step, d.Map)
			}) {
				readers = append(readers, t.PlaceOf(i))
			}
		}
		if len(readers) > 1 {
			for _, r := range readers {
				one := d
				one.From = r
				all = append(all, one)
			}
		}
	}
	return all
}

// gathered returns edits of a step that gathers one constant index of an axis: the edited step gathers another index.
func (t Edits) gathered(step int) []Edit {
	var all []Edit
	if own, ok := t.Gathered(step); ok {
		for k := range min(t.Steps[step].Args[0].Shape[t.Steps[step].Axis()], maxIndexes) {
			if float64(k) != own {
				all = append(all, Edit{Class: Index, At: []Place{{t.sig[step], 1}}, Value: float64(k)})
			}
		}
	}
	return all
}

// Gathered returns the constant index, if a step gathers a single index; ok is false for any other step.
func (t *StepIndex) Gathered(step int) (index float64, ok bool) {
	s := &t.Steps[step]
	if s.Prim != program.Gather {
		return 0, false
	}
	switch from := &t.Steps[origin(t.Program, s.Args[1].Step)]; {
	case from.Prim == program.Number:
		return from.Number().Value, true
	case from.Prim == program.Vector && len(from.Vector()) > 0 && !slices.ContainsFunc(from.Vector(), func(x float64) bool { return x != from.Vector()[0] }):
		return from.Vector()[0], true
	}
	return 0, false
}

// maxIndexes is the length of an axis up to which every index is tried: layers, streams and heads, not channels.
const maxIndexes = 64

// samePart reports whether two views begin at one element of a result: they show the same part of it, in whatever shape.
func samePart(a, b program.Var) bool {
	return a.Step == b.Step && a.Off == b.Off && program.Size(ownShape(a)) == program.Size(ownShape(b))
}

// part returns the first index and the number of indexes of a view along an axis of the step's result: n is the full
// axis length where the view goes beyond the axis.
func (t *StepIndex) part(v program.Var, axis int) (start, n int) {
	shape := t.Steps[v.Step].Shape
	stride := program.Contiguous(shape)[axis]
	block := stride * shape[axis]
	first := v.Off % block
	last := first
	for a, s := range v.Stride {
		switch {
		case s < 0:
			return 0, shape[axis]
		case s < block:
			last += s * (v.Shape[a] - 1)
		}
	}
	if last >= block {
		return 0, shape[axis]
	}
	return first / stride, last/stride - first/stride + 1
}

// shows reports whether a view is of a part of a step: so many indexes of an axis, from one on.
func (t *StepIndex) shows(v program.Var, step int, m Map) bool {
	if v.Step != step || m.Axis >= len(t.Steps[step].Shape) {
		return false
	}
	start, n := t.part(v, m.Axis)
	return start == m.N && n == m.Other
}

// Part is the first view of the part that an edit of an index reads elsewhere.
func (t *StepIndex) Part(d Edit) program.Var {
	step := t.Copies(d.At[0])[0]
	for i := range t.Steps {
		for _, v := range t.Steps[i].Args {
			if t.shows(v, step, d.Map) {
				return v
			}
		}
	}
	return t.Out
}

// index makes every reader of a part of a step's result read the part at another index.
func (d Edit) index(e *Editor, t *StepIndex, step int) bool {
	if d.At[0].Arg == 1 {
		e.Read(step, 1, e.Expand(e.Literal(d.Value), t.Steps[step].Args[1].Shape))
		return e.Err() == nil
	}
	shape := t.Steps[step].Shape
	if d.Map.Axis >= len(shape) || d.Map.By+d.Map.Other > shape[d.Map.Axis] {
		return false
	}
	by := (d.Map.By - d.Map.N) * program.Contiguous(shape)[d.Map.Axis]
	some := false
	for i := range t.Steps {
		if d.From.Step != 0 && t.sig[i] != d.From.Step {
			continue
		}
		for a, v := range t.Steps[i].Args {
			if t.shows(v, step, d.Map) {
				s := &e.Steps[i]
				s.Args = slices.Clone(s.Args)
				s.Args[a].Off += by
				e.changed[i], some = true, true
			}
		}
	}
	if v := t.Out; d.From.Step == 0 && t.shows(v, step, d.Map) {
		v.Off += by
		e.Return(v)
		some = true
	}
	return some
}

// Behind returns edits that add a number after a root, or after its reciprocal, instead of below the root, or take
// the number as the least value below the root.
func (t Edits) Behind() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		if _, _, ok := t.underRoot(i); ok {
			sum := t.rounded(t.Steps[i].Args[0])
			other := program.Max
			if t.Steps[sum].Prim == program.Max {
				other = program.Add
			}
			all = append(all, Edit{Class: Order, At: []Place{t.PlaceOf(i)}}, Edit{Class: Order, At: []Place{t.PlaceOf(sum)}, Prim: other})
			if t.Steps[i].Prim == program.Rsqrt {
				all = append(all, Edit{Class: Order, At: []Place{t.PlaceOf(i)}, Value: secondWay})
			}
		}
	}
	return all
}

// rounded is the step that a variable shows the result of, rounded or not.
func (t *StepIndex) rounded(v program.Var) int {
	for t.Steps[v.Step].Prim == program.Round {
		v = t.Steps[v.Step].Args[0]
	}
	return v.Step
}

// underRoot returns the operands of an addition or a maximum below a root: the number, and the other operand x.
func (t *StepIndex) underRoot(step int) (x, number program.Var, ok bool) {
	s := &t.Steps[step]
	if s.Prim != program.Sqrt && s.Prim != program.Rsqrt {
		return x, number, false
	}
	sum := &t.Steps[t.rounded(s.Args[0])]
	if sum.Prim != program.Add && sum.Prim != program.Max {
		return x, number, false
	}
	for k, a := range sum.Args {
		if t.Steps[a.Step].Prim == program.Number {
			return sum.Args[1-k], a, true
		}
	}
	return x, number, false
}

// behind adds a number to a root.
func (d Edit) behind(e *Editor, t *StepIndex, step int) bool {
	if d.Prim != 0 {
		e.Become(step, d.Prim, t.Steps[step].Args...)
		return true
	}
	x, number, ok := t.underRoot(step)
	if !ok {
		return false
	}
	if d.Second() { // after the inverse
		e.Pass(step, e.Add("", e.Rsqrt("", x), number))
		return true
	}
	y := e.Add("", e.Sqrt("", x), number)
	if t.Steps[step].Prim == program.Rsqrt {
		y = e.Div("", e.Literal(1), y)
	}
	e.Pass(step, y)
	return true
}

// ProductLast multiplies the result by a factor of a product within the program, and not there; nil where it has not as many elements.
func ProductLast(t *StepIndex, factor Place) *program.Edited {
	all := t.at[factor.Step]
	if len(all) != 1 || t.Steps[all[0]].Prim != program.Mul {
		return nil
	}
	e, s := NewEditor(t.Program), &t.Steps[all[0]]
	v, ok := As(s.Args[factor.Arg], t.Out.Shape)
	if !ok {
		return nil
	}
	e.Pass(all[0], s.Args[1-factor.Arg])
	e.Return(e.Mul("", t.Out, v))
	return e.ended(true)
}

// Wider are the edits that take a sum, or a mean, over the axis before the last: in place of the last, and as well.
func (t Edits) Wider() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		s := &t.Steps[i]
		if s.Prim != program.Sum || len(s.Shape) < 2 {
			continue
		}
		if all = append(all, Edit{Class: Axis, At: []Place{t.PlaceOf(i)}, Value: secondWay}); s.Shape[len(s.Shape)-2] > 1 {
			all = append(all, Edit{Class: Axis, At: []Place{t.PlaceOf(i)}})
		}
	}
	return all
}

// wider sums over the last two axes.
func (d Edit) wider(e *Editor, t *StepIndex, step int) bool {
	s := &t.Steps[step]
	last := len(s.Shape) - 1
	if s.Prim != program.Sum || last < 1 || s.Shape[last-1] < 2 {
		return false
	}
	n := s.Shape[last-1]
	shape := append(slices.Clone(s.Shape[:last-1]), n*s.Args[0].Last())
	v := e.Sum("", e.Reshape(e.Cat(last, s.Args[0]), shape...))
	if e.Err() != nil {
		return false
	}
	v.Shape = slices.Clone(s.Shape)
	v.Stride = append(slices.Clone(v.Stride[:len(v.Stride)-1]), 0, 0)
	e.Pass(step, v)
	for i := range t.Steps {
		if number, ok := Divisor(t.Program, i); ok && t.Steps[i].Args[0].Step == step {
			e.Read(i, 1, e.Literal(t.Steps[number].Number().Value*float64(n)))
		}
	}
	return true
}
