package program

import "slices"

// ReadApart is a rewrite by which queries and keys of a fused attention each round what both are computed from, such as a rotary table: a compiler
// that fuses the rotation in front of a kernel makes a loop for queries and a loop for keys, and each loop reads the rounded table or computes the
// table again. No result changes, but the keys have sites of their own, named [OfKeys].
const ReadApart Rewrite = 1 << 31

// OfKeys ends the name of a site that keys have for themselves.
const OfKeys = " of keys"

// Apart reports whether queries and keys have sites of their own.
func (r Rewrite) Apart() bool { return r&ReadApart != 0 }

// readApart returns the program in which the keys of each attention have steps of their own for what they share with the queries. A program without
// such a step is returned as it is.
func (p *Program) readApart() (*Program, error) {
	e := p.Edit()
	some := false
	for _, a := range p.attentions() {
		if queries, keys, ok := p.operands(&a); ok {
			some = e.apart(p.ancestors(queries), p.ancestors(keys)) || some
		}
	}
	if !some {
		return p, nil
	}
	d, err := e.End()
	if err != nil {
		return nil, err
	}
	q, _ := d.Whole(Call{})
	return q, nil
}

// operands are the steps whose results are the queries and the keys of an attention.
func (p *Program) operands(a *attention) (queries, keys int, ok bool) {
	at := slices.IndexFunc(a.path, func(i int) bool { return p.Steps[i].Prim == Dot })
	if at < 0 {
		return 0, 0, false
	}
	s := &p.Steps[a.path[at]]
	queries, keys = s.Args[0].step, s.Args[1].step
	if axis := len(s.Shape) - 1; s.Args[0].shape[axis] > 1 { // the axis of keys
		queries, keys = keys, queries
	}
	return queries, keys, queries != keys
}

// apart gives keys their own copies of the rounded steps that they share with queries, and reports whether there is one. Each reader of such a step is
// on the way to queries alone or to keys alone. Steps at the same sites that keys alone read, such as tables of earlier passes, get the name too.
func (e *Editor) apart(ofQueries, ofKeys []bool) bool {
	shared := map[Site]bool{}
	for i := range e.p.Steps {
		if s := &e.p.Steps[i]; s.Round == Model && !s.Prim.leaf() && ofQueries[i] && ofKeys[i] && e.divides(i, ofQueries, ofKeys) {
			shared[Site{s.Form, s.Site}] = true
		}
	}
	for i := range e.p.Steps {
		s := &e.p.Steps[i]
		if !shared[Site{s.Form, s.Site}] || !ofKeys[i] {
			continue
		}
		own := i
		if ofQueries[i] {
			own = e.Move(i).step
			e.readBy(i, own, func(reader int) bool { return ofKeys[reader] && !ofQueries[reader] })
		} else {
			e.changed[i] = true
		}
		e.steps[own].Name, e.steps[own].Site = s.Name+OfKeys, s.Site+OfKeys
	}
	return len(shared) > 0
}

// divides reports whether queries and keys both read a step, and no reader is on the way to both.
func (e *Editor) divides(step int, ofQueries, ofKeys []bool) bool {
	var queries, keys bool
	for i := range e.p.Steps {
		if !slices.ContainsFunc(e.p.Steps[i].Args, func(a Var) bool { return a.step == step }) {
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
func (e *Editor) readBy(step, other int, some func(reader int) bool) {
	for i := range e.p.Steps {
		for k, a := range e.p.Steps[i].Args {
			if a.step == step && some(i) {
				a.step = other
				e.Read(i, k, a)
			}
		}
	}
}
