package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// ReadAs makes a step read another operand in the shape of the present operand, with the operand's axes in another
// order or row by row. It reports whether the operand fits, see [As].
func (e *Editor) ReadAs(step, arg int, v program.Var) bool {
	v, ok := As(v, e.Steps[step].Args[arg].Shape)
	if ok {
		e.Read(step, arg, v)
	}
	return ok
}

// again copies the steps [from, to). The copies read now where the steps read old. again returns the copy of the
// variable out.
func again(e *Editor, from, to int, old, now, out program.Var) (program.Var, bool) {
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
