package program

import "slices"

// ReadRounded is the site of what [Editor.ReadRounded] adds.
var ReadRounded = Site{Form: readForm, Name: "rounded"}

const readForm = "read"

// ReadRounded makes some of the steps that read a step read its result rounded to the model's dtype.
func (e *Editor) ReadRounded(step int, some func(reader *Step) bool) {
	form, whole := e.form, e.p.Result(step)
	e.form = readForm
	r := e.add(Step{Prim: Round, Name: ReadRounded.Name, Args: []Var{whole}, Shape: whole.shape, Round: Model})
	e.form = form
	for i := range e.p.Steps {
		s := &e.p.Steps[i]
		for k, a := range s.Args {
			if a.step == step && some(s) {
				a.step = r.step
				e.Read(i, k, a)
			}
		}
	}
}

// Through lists the steps from a step on to the first that several steps read, each computed by element and the only reader of the one before it. Without
// such a step the list is empty.
func (p *Program) Through(step int) []int {
	var all []int
	for at := step; ; {
		readers := p.readers(at)
		switch {
		case len(readers) > 1:
			return all
		case len(readers) == 0 || !p.Steps[readers[0]].Prim.byElement() && p.Steps[readers[0]].Prim != Round:
			return nil
		}
		at = readers[0]
		all = append(all, at)
	}
}

// readers are the steps that read the result of a step.
func (p *Program) readers(step int) []int {
	var all []int
	for i := range p.Steps {
		if slices.ContainsFunc(p.Steps[i].Args, func(a Var) bool { return a.step == step }) {
			all = append(all, i)
		}
	}
	return all
}

// ReadRoundedThrough is ReadRounded for steps that read the result through others: these are computed twice, see [Program.Through].
func (e *Editor) ReadRoundedThrough(step int, through []int, some func(reader *Step) bool) {
	last := through[len(through)-1]
	e.ReadRounded(step, func(*Step) bool { return false })
	now := len(e.steps) - 1
	from := step
	for _, i := range through {
		again := e.Move(i).step
		s := &e.steps[again]
		s.Name += " of " + ReadRounded.Name
		s.Args = slices.Clone(e.p.Steps[i].Args)
		for k := range s.Args {
			if s.Args[k].step == from {
				s.Args[k].step = now
			}
		}
		from, now = i, again
	}
	e.readBy(last, now, func(reader int) bool { return some(&e.p.Steps[reader]) })
}
