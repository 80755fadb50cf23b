package program

import "slices"

// ReadAs makes a step read another operand in the shape of the one that it had, its axes in another order or read row by row; it
// reports whether the operand has that many elements.
func (e *Editor) ReadAs(step, arg int, v Var) bool {
	v, ok := v.as(e.steps[step].Args[arg].shape)
	if ok {
		e.Read(step, arg, v)
	}
	return ok
}

// Redirect makes the steps from one up to another read a result in place of a whole tensor, or of one stream of a stack, each through
// the view that it had of it. The result is that of a step, of the shape of what was read.
func (e *Editor) Redirect(from, to int, old, now Var) bool {
	if !old.plain() || now.off != 0 || !now.plain() || !slices.Equal(old.shape, now.shape) {
		return false
	}
	some := false
	for i := from; i < to; i++ {
		for k, a := range e.steps[i].Args {
			if a.step != old.step || a.off < old.off || a.off >= old.off+size(old.shape) {
				continue
			}
			s := &e.steps[i]
			s.Args = slices.Clone(s.Args)
			s.Args[k].step, s.Args[k].off = now.step, a.off-old.off
			e.changed[i], some = true, true
		}
	}
	return some
}

// Again adds a copy of the steps from one up to another, which read now in place of old, and returns what was out.
func (e *Editor) Again(from, to int, old, now, out Var) (Var, bool) {
	at := make(map[int]int, to-from)
	for i := from; i < to; i++ {
		s := e.p.Steps[i]
		s.Args = slices.Clone(s.Args)
		for k := range s.Args {
			a := &s.Args[k]
			if n, ok := at[a.step]; ok {
				a.step = n
			} else if a.step == old.step {
				if !old.plain() || !now.plain() || now.off != 0 || size(old.shape) != size(now.shape) {
					return out, false
				}
				a.step, a.off = now.step, a.off-old.off
			}
		}
		e.steps = append(e.steps, s)
		at[i] = len(e.steps) - 1
	}
	n, ok := at[out.step]
	out.step = n
	return out, ok
}
