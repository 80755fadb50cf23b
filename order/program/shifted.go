package program

import "slices"

// mostShifted bounds the steps of programs in which steps are taken elsewhere.
const mostShifted = 60

// Shifted are the edits that take a step of another value: of one that its own operand is computed from, or of one that is computed from
// its result, for all that read that. So it is where a weight, a number, a bias or a function is applied too early, or too late.
func (t *Parts) Shifted() []Edit {
	if len(t.Steps) > mostShifted {
		return nil
	}
	var all []Edit
	for _, i := range t.Firsts() {
		for arg := range t.Steps[i].Args {
			if !t.shiftable(i, arg) {
				continue
			}
			from := t.rounded(t.Steps[i].Args[arg])
			add := func(step, later int) {
				d := Edit{Class: Order, At: []Place{{t.sig[i], arg}}, From: t.Of(step), Map: Map{Kind: Shift, By: later}}
				if slices.ContainsFunc(all, func(o Edit) bool { return o.At[0] == d.At[0] && o.From == d.From }) || !t.takes(i, arg, step) {
					return
				}
				if all = append(all, d); t.Steps[i].Round == Model {
					d.Value = 1
					all = append(all, d)
				}
			}
			before := t.Ancestors(from)
			slices.Reverse(before)
			for _, step := range before {
				if step != from {
					add(step, 0)
				}
			}
			for step := i + 1; step < len(t.Steps); step++ {
				if slices.Contains(t.Ancestors(step), i) {
					add(step, 1)
				}
			}
		}
	}
	return all
}

// shiftable reports whether a step computes from one operand by element, in its own shape, and from others that are leaves or numbers.
func (t *Parts) shiftable(i, arg int) bool {
	s := &t.Steps[i]
	if !s.Prim.byElement() || s.Prim == Round || s.Prim == Copy || s.Prim == Angle || s.Prim == Floor || s.Prim == Gate || t.Steps[s.Args[arg].step].Prim == Number || s.Args[arg].repeated() {
		return false
	}
	if _, mean := t.count(i); mean {
		return false
	}
	for k, a := range s.Args {
		if k != arg && slices.ContainsFunc(t.Ancestors(a.step), func(n int) bool { return t.Steps[n].Prim == Input }) {
			return false
		}
	}
	return true
}

// takes reports whether a step can be taken of the result of another: that has its shape, or numbers are its other operands.
func (t *Parts) takes(i, arg, step int) bool {
	s, of := &t.Steps[i], &t.Steps[step]
	if p := of.Prim; p.leaf() && p != Input || p == Mask || p == Lookup || p == Rank || p == Round || p == Copy || p == Angle {
		return false
	}
	if slices.Equal(of.Shape, s.Shape) {
		return true
	}
	for k, a := range s.Args {
		if k != arg && size(a.own()) != 1 {
			return false
		}
	}
	return true
}

// shift takes a step of the result of another.
func (d Edit) shift(e *Editor, t *Parts, step, k, copies int) bool {
	s := &t.Steps[step]
	of, ok := t.of(Place{Step: d.From.Step}, k, copies)
	arg := d.At[0].Arg
	if !ok || of == step || !t.shiftable(step, arg) || !t.takes(step, arg, of) {
		return false
	}
	taken := *s
	taken.Shape = t.Steps[of].Shape
	taken.Args = slices.Clone(s.Args)
	for n, a := range taken.Args {
		switch {
		case n == arg:
			taken.Args[n] = e.Move(of)
		case !slices.Equal(taken.Shape, s.Shape):
			taken.Args[n] = Var{a.step, a.off, taken.Shape, make([]int, len(taken.Shape))}
		}
	}
	if d.Value == 1 {
		taken.Round = Plain
	}
	v := s.Args[arg]
	e.Pass(step, v)
	if of != v.step || d.Map.By == 1 {
		e.Pass(of, e.add(taken))
		return e.err == nil
	}
	return false
}
