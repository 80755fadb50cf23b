// Package edit changes programs: an edited program computes what a wrong port may have computed.
//
// An [Editor] changes a copy of a program, step by step. An [Edit] is a change as data, at places that a [StepIndex]
// names by structure: an edit that is found in one program is tried in other programs. The functions for patterns,
// such as a softmax or a norm, find the pattern in any program and edit every occurrence.
package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// Class is a kind of edit. They are in the order of their names: what is said first of edits that give the same.
type Class uint8

// The classes.
const (
	LeftOut   Class = iota // a step hands on what it was computed from
	Exchanged              // a step has a different primitive
	Swapped                // its operands are exchanged
	Twice                  // it is taken twice
	Count                  // a sum is divided by another number of terms
	Constant               // a number differs
	Axis                   // two axes of an operand are exchanged
	Leaf                   // another weight, or a changed weight
	Index                  // a part of a tensor is read at another index of it
	Order                  // two steps are taken in another order
	Operand                // a step reads another value of the program
	InputOf                // an input is the wrong captured tensor
	Mapped                 // elements are in another order
	Whole                  // an operation on a part of a tensor acts on the whole, or on the other part
	Known                  // a variant of a mask, a softmax, a norm, an activation
	Inserted               // a step too many
)

var classWords = [...]string{
	"left out", "exchanged", "operand order", "twice", "count", "constant", "axis", "weight", "index", "order", "operand", "input", "index map", "part", "recognised", "inserted",
}

// String names a class.
func (c Class) String() string { return classWords[c] }

// Edit is a change of a program in one place, as data: it is made once, and moved to the same step of other programs.
type Edit struct {
	Class Class
	At    []Place
	From  Place        // what is read there in place of what was
	Prim  program.Prim // of the step there
	Value float64      // the number of Constant, what Count adds, the index of Index, a term of a sum of Order; see [Edit.Second]
	Map   Map
	// Back: the result is put back in order.
	Back bool
}

// secondWay is the Value of the second of the two ways in which some edits can be made.
const secondWay = 1

// Second reports the second way of an edit: Whole of the other part only, Axis along the axis before the last, Order with epsilon after the inverse,
// Shift without the rounding to the model's dtype. The Value of any other edit is a number, and is no way.
func (d Edit) Second() bool { return d.Value == secondWay }

// Apply edits a program; nil where the program has no such place, or the edit does not go with its shapes.
func (d Edit) Apply(t *StepIndex) *program.Edited {
	e := NewEditor(t.Program)
	for _, at := range d.At {
		all := t.at[at.Step]
		if len(all) == 0 {
			return nil
		}
		for k, step := range all {
			if !d.one(e, t, step, at, k, len(all)) {
				return nil
			}
		}
	}
	if d.Back {
		m := d.Map
		if at := t.at[d.At[0].Step]; len(at) > 0 { // along the last axis of an input: that of the result
			if in := t.Steps[at[0]].Shape; d.At[0].Arg < 0 && m.Axis == len(in)-1 && len(in) != len(e.out.Shape) {
				if m.Axis = len(e.out.Shape) - 1; m.By == 0 {
					m.By = in[len(in)-1]
				}
				if m.By == e.out.Last() {
					m.By = 0
				}
			}
		}
		v, ok := e.Mapped(e.out, m.Inverse(e.out.Shape))
		if !ok {
			return nil
		}
		e.Return(v)
	}
	out, err := e.End()
	if err != nil {
		return nil
	}
	return out
}

// one edits one copy of a step.
func (d Edit) one(e *Editor, t *StepIndex, step int, at Place, k, copies int) bool {
	s := &t.Steps[step]
	switch d.Class {
	case LeftOut, Operand:
		return d.read(e, t, step, at, k, copies)
	case Exchanged:
		if s.Prim == program.Rsqrt && d.Prim == program.Div { // 1/x
			e.Pass(step, e.Div("", e.Literal(1), s.Args[0]))
			break
		}
		e.Become(step, d.Prim, s.Args...)
	case Swapped:
		e.Become(step, s.Prim, s.Args[1], s.Args[0])
	case Twice:
		twice(e, t, step, at.Arg)
	case Constant:
		e.SetNumber(step, d.Value)
	case Count:
		if d.Map.N > 0 {
			return d.fewer(e, t, step)
		}
		n := e.Literal(s0(t, step) + d.Value)
		e.Read(step, 1, n)
	case Axis:
		if d.Map.Kind == Apart {
			return d.apart(e, t, step)
		}
		if d.Map.Kind == 0 && d.Second() {
			return d.across(e, t, step)
		} else if d.Map.Kind == 0 {
			return d.wider(e, t, step)
		}
		return d.mapped(e, t, step, at)
	case Mapped:
		return d.mapped(e, t, step, at)
	case Index:
		return d.index(e, t, step)
	case Order:
		if d.Map.Kind == Shift {
			return d.shift(e, t, step, k, copies)
		}
		if d.Prim == program.Mul || d.Prim == program.Div {
			return d.alone(e, t, step)
		}
		return d.behind(e, t, step)
	case Whole:
		return d.whole(e, t, step)
	default:
		return false
	}
	return true
}

// s0 is what a step divides a sum by.
func s0(t *StepIndex, step int) float64 {
	n, _ := Divisor(t.Program, step)
	return t.Steps[n].Number().Value
}

// read reads another value at a place.
func (d Edit) read(e *Editor, t *StepIndex, step int, at Place, k, copies int) bool {
	s := &t.Steps[step]
	if s.Prim == program.Affine && at.Arg == 2 { // the bias
		e.Step(step).Args = slices.Clone(s.Args[:2])
		return true
	}
	from, ok := t.of(Place{Step: d.From.Step}, k, copies)
	if !ok || d.From.Arg >= len(t.Steps[from].Args) {
		return false
	}
	v := t.variable(from, d.From.Arg)
	if at.Arg < 0 {
		if v, ok = As(v, s.Shape); ok {
			e.Pass(step, v)
		}
		return ok
	}
	old := s.Args[at.Arg]
	if !slices.Equal(ownShape(v), ownShape(old)) || s.Prim == program.Dot && !slices.Equal(v.Shape, old.Shape) {
		return false
	}
	if len(v.Shape) > len(old.Shape) {
		return false
	}
	e.Read(step, at.Arg, v)
	return true
}

// twice takes a step of its own result, in place of one operand.
func twice(e *Editor, t *StepIndex, step, arg int) {
	s := &t.Steps[step]
	once := e.Move(step)
	args := slices.Clone(s.Args)
	for k, a := range args {
		if a.Same(s.Args[arg]) {
			args[k] = once
		}
	}
	e.Become(step, s.Prim, args...)
}

// mapped puts the elements of an operand, or of a result, in another order.
func (d Edit) mapped(e *Editor, t *StepIndex, step int, at Place) bool {
	if at.Arg == Returned {
		v, ok := e.Mapped(e.out, d.Map)
		e.Return(v)
		return ok
	}
	if d.Map.Kind == Turn || d.Map.Kind == Cross {
		return turn(e, t, step, d.Map)
	}
	if at.Arg < 0 {
		v, ok := e.Mapped(e.Move(step), d.Map)
		if ok {
			e.Pass(step, v)
		}
		return ok
	}
	v := t.Steps[step].Args[at.Arg]
	if d.Map.Kind == Reread || d.Map.Kind == First {
		v = t.along(step, v)
	}
	v, ok := e.Mapped(v, d.Map)
	if ok {
		e.Read(step, at.Arg, v)
	}
	return ok
}

// whole applies the operation on one part of a two-part Cat to both parts or, with Value 1, only to the other part.
func (d Edit) whole(e *Editor, t *StepIndex, step int) bool {
	s := &t.Steps[step]
	if s.Prim != program.Cat || len(s.Args) != 2 {
		return false
	}
	for k, a := range s.Args {
		f, rest := &t.Steps[a.Step], s.Args[1-k]
		if !f.Prim.Computes() || len(f.Args) != 2 || f.Args[0].Step != rest.Step || len(f.Args[0].Shape) != len(rest.Shape) {
			continue
		}
		other := *f
		other.Args = []program.Var{rest, f.Args[1]}
		if other.Shape = rest.Shape; program.Size(ownShape(f.Args[1])) > program.Size(rest.Shape) {
			return false
		}
		y := f.Args[1]
		y.Shape, y.Stride = slices.Clone(y.Shape), slices.Clone(y.Stride)
		for ax := range y.Shape {
			if y.Stride[ax] == 0 {
				y.Shape[ax] = rest.Shape[ax]
			} else if y.Shape[ax] != rest.Shape[ax] {
				return false
			}
		}
		other.Args[1] = y
		done := e.Append(other)
		args := slices.Clone(s.Args)
		args[1-k] = done
		if d.Second() { // not to this one
			args[k] = f.Args[0]
		}
		e.Become(step, program.Cat, args...)
		return true
	}
	return false
}
