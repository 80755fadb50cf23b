package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// mostShifted is the most steps of a program for which Shifted returns edits.
const mostShifted = 60

// Where a shifted step is taken, as Map.By of Shift says.
const (
	earlier = iota // of an ancestor of the operand
	later          // of a value computed from the result
)

// Shifted returns edits that apply a step too early or too late: to an ancestor of the operand, or to a value
// computed from the result, for all readers of the value. The step applies a weight, a number, a bias or a function.
func (t Edits) Shifted() []Edit {
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
			add := func(step, by int) {
				d := Edit{Class: Order, At: []Place{{t.sig[i], arg}}, From: t.PlaceOf(step), Map: Map{Kind: Shift, By: by}}
				if slices.ContainsFunc(all, func(o Edit) bool { return o.At[0] == d.At[0] && o.From == d.From }) || !t.takes(i, arg, step) {
					return
				}
				if all = append(all, d); t.Steps[i].Round == program.Model { // also without the rounding to the model's dtype
					d.Value = secondWay
					all = append(all, d)
				}
			}
			before := Ancestors(t.Program, from)
			slices.Reverse(before)
			for _, step := range before {
				if step != from {
					add(step, earlier)
				}
			}
			for step := i + 1; step < len(t.Steps); step++ {
				if slices.Contains(Ancestors(t.Program, step), i) {
					add(step, later)
				}
			}
		}
	}
	return all
}

// shiftable reports whether a step computes by element from one operand, in the operand's own shape. The other
// operands must not depend on inputs.
func (t *StepIndex) shiftable(i, arg int) bool {
	s := &t.Steps[i]
	if !s.Prim.ByElement() || s.Prim == program.Round || s.Prim == program.Copy || s.Prim == program.Angle || s.Prim == program.Floor || s.Prim == program.Gate || t.Steps[s.Args[arg].Step].Prim == program.Number || s.Args[arg].Repeats() {
		return false
	}
	if _, mean := Divisor(t.Program, i); mean {
		return false
	}
	for k, a := range s.Args {
		if k != arg && slices.ContainsFunc(Ancestors(t.Program, a.Step), func(n int) bool { return t.Steps[n].Prim == program.Input }) {
			return false
		}
	}
	return true
}

// takes reports whether step i can take the result of another step as its operand arg: the shapes are equal, or the
// other operands of step i are single numbers. Weights, numbers, masks, lookups, ranks, roundings, copies and angles are
// not taken.
func (t *StepIndex) takes(i, arg, step int) bool {
	s, of := &t.Steps[i], &t.Steps[step]
	if p := of.Prim; p.IsLeaf() && p != program.Input || p == program.Mask || p == program.Lookup || p == program.Rank || p == program.Round || p == program.Copy || p == program.Angle {
		return false
	}
	if slices.Equal(of.Shape, s.Shape) {
		return true
	}
	for k, a := range s.Args {
		if k != arg && program.Size(ownShape(a)) != 1 {
			return false
		}
	}
	return true
}

// shift makes a step hand on its operand, and applies the step to the result of another step instead. All readers of that
// result read the new value.
func (d Edit) shift(e *Editor, t *StepIndex, step, k, copies int) bool {
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
			taken.Args[n] = program.Var{Step: a.Step, Off: a.Off, Shape: taken.Shape, Stride: make([]int, len(taken.Shape))}
		}
	}
	if d.Second() {
		taken.Round = program.Plain
	}
	v := s.Args[arg]
	e.Pass(step, v)
	if of != v.Step || d.Map.By == later {
		e.Pass(of, e.Append(taken))
		return e.Err() == nil
	}
	return false
}
