package rewrite

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// RoundedRead is the site of what [ReadRounded] adds.
var RoundedRead = program.Site{Form: readForm, Name: "rounded"}

const readForm = "read"

// ReadRounded makes some of the steps that read a step read its result rounded to the model's dtype.
func ReadRounded(e *edit.Editor, step int, some func(reader *program.Step) bool) {
	form, whole := e.Form, e.Before.Result(step)
	e.Form = readForm
	r := e.Append(program.Step{Prim: program.Round, Name: RoundedRead.Name, Args: []program.Var{whole}, Shape: whole.Shape, Round: program.Model})
	e.Form = form
	for i := range e.Before.Steps {
		s := &e.Before.Steps[i]
		for k, a := range s.Args {
			if a.Step == step && some(s) {
				a.Step = r.Step
				e.Read(i, k, a)
			}
		}
	}
}

// Through lists the steps from a step on to the first that several steps read, each computed by element and the only reader of the one before it. Without
// such a step the list is empty.
func Through(p *program.Program, step int) []int {
	var all []int
	for at := step; ; {
		readers := program.ReadersOf(p, at)
		switch {
		case len(readers) > 1:
			return all
		case len(readers) == 0 || !p.Steps[readers[0]].Prim.ByElement() && p.Steps[readers[0]].Prim != program.Round:
			return nil
		}
		at = readers[0]
		all = append(all, at)
	}
}

// ReadRoundedThrough is ReadRounded for steps that read the result through intermediate steps. The intermediate steps
// are computed twice, see [Through].
func ReadRoundedThrough(e *edit.Editor, step int, through []int, some func(reader *program.Step) bool) {
	last := through[len(through)-1]
	ReadRounded(e, step, func(*program.Step) bool { return false })
	now := len(e.Steps) - 1
	from := step
	for _, i := range through {
		again := e.Move(i).Step
		s := &e.Steps[again]
		s.Name += " of " + RoundedRead.Name
		s.Args = slices.Clone(e.Before.Steps[i].Args)
		for k := range s.Args {
			if s.Args[k].Step == from {
				s.Args[k].Step = now
			}
		}
		from, now = i, again
	}
	readBy(e, last, now, func(reader int) bool { return some(&e.Before.Steps[reader]) })
}
