package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// ReadAs makes a step read another operand in the shape of the one that it had, its axes in another order or read row by row; it
// reports whether the operand has that many elements.
func (e *Editor) ReadAs(step, arg int, v program.Var) bool {
	v, ok := as(v, e.Steps[step].Args[arg].Shape)
	if ok {
		e.Read(step, arg, v)
	}
	return ok
}

// Redirect makes the steps from one up to another read a result in place of a whole tensor, or of one stream of a stack, each through
// the view that it had of it. The result is that of a step, of the shape of what was read.
func (e *Editor) Redirect(from, to int, old, now program.Var) bool {
	if !old.Plain() || now.Off != 0 || !now.Plain() || !slices.Equal(old.Shape, now.Shape) {
		return false
	}
	some := false
	for i := from; i < to; i++ {
		for k, a := range e.Steps[i].Args {
			if a.Step != old.Step || a.Off < old.Off || a.Off >= old.Off+program.Size(old.Shape) {
				continue
			}
			s := &e.Steps[i]
			s.Args = slices.Clone(s.Args)
			s.Args[k].Step, s.Args[k].Off = now.Step, a.Off-old.Off
			e.changed[i], some = true, true
		}
	}
	return some
}

// Again adds a copy of the steps from one up to another, which read now in place of old, and returns what was out.
func (e *Editor) Again(from, to int, old, now, out program.Var) (program.Var, bool) {
	at := make(map[int]int, to-from)
	for i := from; i < to; i++ {
		s := e.Before.Steps[i]
		s.Args = slices.Clone(s.Args)
		for k := range s.Args {
			a := &s.Args[k]
			if n, ok := at[a.Step]; ok {
				a.Step = n
			} else if a.Step == old.Step {
				if !old.Plain() || !now.Plain() || now.Off != 0 || program.Size(old.Shape) != program.Size(now.Shape) {
					return out, false
				}
				a.Step, a.Off = now.Step, a.Off-old.Off
			}
		}
		e.Steps = append(e.Steps, s)
		at[i] = len(e.Steps) - 1
	}
	n, ok := at[out.Step]
	out.Step = n
	return out, ok
}
