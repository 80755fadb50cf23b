package program

import "slices"

// Indexes are the edits that read a part of a tensor at another index of it, for all steps that read that part: another stream of
// a stack, another layer's slice.
func (t *Parts) Indexes() []Edit {
	var all []Edit
	var seen []Var
	look := func(v Var) {
		if t.Steps[v.step].Prim == Number || slices.ContainsFunc(seen, func(o Var) bool { return samePart(o, v) }) {
			return
		}
		seen = append(seen, v)
		for axis, n := range t.Steps[v.step].Shape {
			start, size := t.part(v, axis)
			if size >= n {
				continue
			}
			for other := 0; other+size <= n; other++ {
				if n > maxIndexes && (size < 2 || other%size != 0 && other+size != n) {
					continue // of a long axis only other parts of the same size: of keys for values, of the gate for what it multiplies
				}
				if other != start {
					all = append(all, Edit{Class: Index, At: []Place{t.Of(v.step)}, Map: Map{Axis: axis, N: start, By: other, Other: size}})
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

// IndexesOfOne are those of a single index that one of several steps reads elsewhere, where others read it as they should.
func (t *Parts) IndexesOfOne() []Edit {
	var all []Edit
	for _, d := range t.Indexes() {
		if d.Map.Other != 1 {
			continue
		}
		var readers []Place
		for _, i := range t.Firsts() {
			if slices.ContainsFunc(t.Steps[i].Args, func(v Var) bool { return slices.Contains(t.Copies(d.At[0]), v.step) && t.shows(v, v.step, d.Map) }) {
				readers = append(readers, t.Of(i))
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

// gathered are the edits of a step that gathers one index of an axis, a constant, by which it gathers another.
func (t *Parts) gathered(step int) []Edit {
	var all []Edit
	if own, ok := t.Gathered(step); ok {
		for k := range min(t.Steps[step].Args[0].shape[t.Steps[step].Axis], maxIndexes) {
			if float64(k) != own {
				all = append(all, Edit{Class: Index, At: []Place{{t.sig[step], 1}}, Value: float64(k)})
			}
		}
	}
	return all
}

// Gathered is the one index that a step gathers, a constant; ok is false of any other step.
func (t *Parts) Gathered(step int) (index float64, ok bool) {
	s := &t.Steps[step]
	if s.Prim != Gather {
		return 0, false
	}
	switch from := &t.Steps[t.origin(s.Args[1].step)]; {
	case from.Prim == Number:
		return from.Value, true
	case from.Prim == Vector && len(from.Values) > 0 && !slices.ContainsFunc(from.Values, func(x float64) bool { return x != from.Values[0] }):
		return from.Values[0], true
	}
	return 0, false
}

// maxIndexes is the longest axis of which every index is tried: of layers, streams and heads, not of channels.
const maxIndexes = 64

// samePart reports whether two views begin at one element of a result: they show the same part of it, in whatever shape.
func samePart(a, b Var) bool {
	return a.step == b.step && a.off == b.off && size(a.own()) == size(b.own())
}

// part is the place of a view along an axis of the result that it is of, and how many of its indexes it has: all, where it goes beyond.
func (t *Parts) part(v Var, axis int) (start, n int) {
	shape := t.Steps[v.step].Shape
	stride := contiguous(shape)[axis]
	block := stride * shape[axis]
	first := v.off % block
	last := first
	for a, s := range v.stride {
		switch {
		case s < 0:
			return 0, shape[axis]
		case s < block:
			last += s * (v.shape[a] - 1)
		}
	}
	if last >= block {
		return 0, shape[axis]
	}
	return first / stride, last/stride - first/stride + 1
}

// shows reports whether a view is of a part of a step: so many indexes of an axis, from one on.
func (t *Parts) shows(v Var, step int, m Map) bool {
	if v.step != step || m.Axis >= len(t.Steps[step].Shape) {
		return false
	}
	start, n := t.part(v, m.Axis)
	return start == m.N && n == m.Other
}

// Part is the first view of the part that an edit of an index reads elsewhere.
func (t *Parts) Part(d Edit) Var {
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

// index reads another index of a step wherever that part of it is read.
func (d Edit) index(e *Editor, t *Parts, step int) bool {
	if d.At[0].Arg == 1 {
		e.Read(step, 1, e.Expand(e.Literal(d.Value), t.Steps[step].Args[1].shape))
		return e.err == nil
	}
	shape := t.Steps[step].Shape
	if d.Map.Axis >= len(shape) || d.Map.By+d.Map.Other > shape[d.Map.Axis] {
		return false
	}
	by := (d.Map.By - d.Map.N) * contiguous(shape)[d.Map.Axis]
	some := false
	for i := range t.Steps {
		if d.From.Step != 0 && t.sig[i] != d.From.Step {
			continue
		}
		for a, v := range t.Steps[i].Args {
			if t.shows(v, step, d.Map) {
				s := &e.steps[i]
				s.Args = slices.Clone(s.Args)
				s.Args[a].off += by
				e.changed[i], some = true, true
			}
		}
	}
	if v := t.Out; d.From.Step == 0 && t.shows(v, step, d.Map) {
		v.off += by
		e.Return(v)
		some = true
	}
	return some
}

// Behind are the edits that add a number to a root, or to its inverse, not to what is below it, or take it as the least value there.
func (t *Parts) Behind() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		if _, _, ok := t.underRoot(i); ok {
			sum := t.rounded(t.Steps[i].Args[0])
			other := Max
			if t.Steps[sum].Prim == Max {
				other = Add
			}
			all = append(all, Edit{Class: Order, At: []Place{t.Of(i)}}, Edit{Class: Order, At: []Place{t.Of(sum)}, Prim: other})
			if t.Steps[i].Prim == Rsqrt {
				all = append(all, Edit{Class: Order, At: []Place{t.Of(i)}, Value: 1})
			}
		}
	}
	return all
}

// rounded is the step that a variable shows the result of, rounded or not.
func (t *Parts) rounded(v Var) int {
	for t.Steps[v.step].Prim == Round {
		v = t.Steps[v.step].Args[0]
	}
	return v.step
}

// underRoot are the number that is added below a root, and what it is added to.
func (t *Parts) underRoot(step int) (x, number Var, ok bool) {
	s := &t.Steps[step]
	if s.Prim != Sqrt && s.Prim != Rsqrt {
		return x, number, false
	}
	sum := &t.Steps[t.rounded(s.Args[0])]
	if sum.Prim != Add && sum.Prim != Max {
		return x, number, false
	}
	for k, a := range sum.Args {
		if t.Steps[a.step].Prim == Number {
			return sum.Args[1-k], a, true
		}
	}
	return x, number, false
}

// behind adds a number to a root.
func (d Edit) behind(e *Editor, t *Parts, step int) bool {
	if d.Prim != 0 {
		e.Become(step, d.Prim, t.Steps[step].Args...)
		return true
	}
	x, number, ok := t.underRoot(step)
	if !ok {
		return false
	}
	if d.Value == 1 { // behind the inverse
		e.Pass(step, e.Add("", e.Rsqrt("", x), number))
		return true
	}
	y := e.Add("", e.Sqrt("", x), number)
	if t.Steps[step].Prim == Rsqrt {
		y = e.Div("", e.Literal(1), y)
	}
	e.Pass(step, y)
	return true
}

// ProductLast multiplies the result by a factor of a product within the program, and not there; nil where it has not as many elements.
func (t *Parts) ProductLast(factor Place) *Edited {
	all := t.at[factor.Step]
	if len(all) != 1 || t.Steps[all[0]].Prim != Mul {
		return nil
	}
	e, s := t.Edit(), &t.Steps[all[0]]
	v, ok := s.Args[factor.Arg].as(t.Out.shape)
	if !ok {
		return nil
	}
	e.Pass(all[0], s.Args[1-factor.Arg])
	e.Return(e.Mul("", t.Out, v))
	return e.ended(true)
}

// Wider are the edits that take a sum, or a mean, over the axis before the last: in place of the last, and as well.
func (t *Parts) Wider() []Edit {
	var all []Edit
	for _, i := range t.Firsts() {
		s := &t.Steps[i]
		if s.Prim != Sum || len(s.Shape) < 2 {
			continue
		}
		if all = append(all, Edit{Class: Axis, At: []Place{t.Of(i)}, Value: 1}); s.Shape[len(s.Shape)-2] > 1 {
			all = append(all, Edit{Class: Axis, At: []Place{t.Of(i)}})
		}
	}
	return all
}

// wider sums over the last two axes.
func (d Edit) wider(e *Editor, t *Parts, step int) bool {
	s := &t.Steps[step]
	last := len(s.Shape) - 1
	if s.Prim != Sum || last < 1 || s.Shape[last-1] < 2 {
		return false
	}
	n := s.Shape[last-1]
	shape := append(slices.Clone(s.Shape[:last-1]), n*s.Args[0].Last())
	v := e.Sum("", e.Reshape(e.Cat(last, s.Args[0]), shape...))
	if e.err != nil {
		return false
	}
	v.shape = slices.Clone(s.Shape)
	v.stride = append(slices.Clone(v.stride[:len(v.stride)-1]), 0, 0)
	e.Pass(step, v)
	for i := range t.Steps {
		if number, ok := t.count(i); ok && t.Steps[i].Args[0].step == step {
			e.Read(i, 1, e.Literal(t.Steps[number].Value*float64(n)))
		}
	}
	return true
}
