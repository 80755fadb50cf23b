package rewrite

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// OfKeys ends the name of a site that keys have for themselves.
const OfKeys = " of keys"

// readApart returns the program with separate steps for the keys of each attention in place of the steps that keys
// and queries share. A program without a shared step is returned unchanged.
func readApart(p *program.Program) (*program.Program, error) {
	e := edit.NewEditor(p)
	some := false
	for _, a := range attentions(p) {
		if queries, keys, ok := operands(p, &a); ok {
			some = apart(e, edit.Leading(p, queries), edit.Leading(p, keys)) || some
		}
	}
	if !some {
		return p, nil
	}
	d, err := e.End()
	if err != nil {
		return nil, err
	}
	q, _ := d.Whole(program.Call{})
	return q, nil
}

// operands are the steps whose results are the queries and the keys of an attention.
func operands(p *program.Program, a *attention) (queries, keys int, ok bool) {
	at := slices.IndexFunc(a.path, func(i int) bool { return p.Steps[i].Prim == program.Dot })
	if at < 0 {
		return 0, 0, false
	}
	s := &p.Steps[a.path[at]]
	queries, keys = s.Args[0].Step, s.Args[1].Step
	if axis := len(s.Shape) - 1; s.Args[0].Shape[axis] > 1 { // the axis of keys
		queries, keys = keys, queries
	}
	return queries, keys, queries != keys
}

// apart gives keys their own copies of the rounded steps that keys and queries share, and reports whether it copied a
// step. Each reader of a shared step leads only to queries or only to keys. Steps at the same sites that only keys
// read, such as tables of earlier passes, get the copies' name, too.
func apart(e *edit.Editor, ofQueries, ofKeys []bool) bool {
	shared := map[program.Site]bool{}
	for i := range e.Before.Steps {
		if s := &e.Before.Steps[i]; s.Round == program.Model && !s.Prim.IsLeaf() && ofQueries[i] && ofKeys[i] && divides(e, i, ofQueries, ofKeys) {
			shared[program.Site{Form: s.Form, Name: s.Site}] = true
		}
	}
	for i := range e.Before.Steps {
		s := &e.Before.Steps[i]
		if !shared[program.Site{Form: s.Form, Name: s.Site}] || !ofKeys[i] {
			continue
		}
		own := i
		if ofQueries[i] {
			own = e.Move(i).Step
			readBy(e, i, own, func(reader int) bool { return ofKeys[reader] && !ofQueries[reader] })
		} else {
			e.Step(i)
		}
		e.Steps[own].Name, e.Steps[own].Site = s.Name+OfKeys, s.Site+OfKeys
	}
	return len(shared) > 0
}

// divides reports whether queries and keys both read a step, and no reader is on the way to both.
func divides(e *edit.Editor, step int, ofQueries, ofKeys []bool) bool {
	var queries, keys bool
	for i := range e.Before.Steps {
		if !slices.ContainsFunc(e.Before.Steps[i].Args, func(a program.Var) bool { return a.Step == step }) {
			continue
		}
		if ofQueries[i] && ofKeys[i] {
			return false
		}
		queries, keys = queries || ofQueries[i], keys || ofKeys[i]
	}
	return queries && keys
}

// readBy makes some readers of a step read another step of the same shape, each through the view that it had.
func readBy(e *edit.Editor, step, other int, some func(reader int) bool) {
	for i := range e.Before.Steps {
		for k, a := range e.Before.Steps[i].Args {
			if a.Step == step && some(i) {
				a.Step = other
				e.Read(i, k, a)
			}
		}
	}
}
