package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Usual is one of the usual mistakes of ports in docs/mistakes.md: a [Mistake] of the operations of some roles. For a run
// without mistakes, the package tells which usual mistakes the run would have shown.
type Usual struct {
	Name string // short, without blanks
	Page string // its heading in docs/mistakes.md, as an anchor
	What string // in words

	// at are patterns of the entries with the mistake. After "=", a pattern may have the start of the operation's form.
	at []string
	// seen is the pattern of the entries that may show the mistake; empty if the entries with the mistake show it. If seen is set, a sight computes
	// tables and masks, which follow from positions, inside the cut: one entry reads another table than its neighbours.
	seen  string
	when  func(c *order.Config) bool // reports whether the mistake is possible in a model; nil for always
	needs need                       // what a run must have to show the mistake; nil for nothing
	// is gives the mistake of an entry, or the zero value if the entry cannot have the mistake. It is nil if no kind of the catalogue expresses the
	// mistake; then edit makes the edit.
	is   func(s *subject, e *Entry) Mistake
	edit func(s *subject, e *Entry) *program.Edited
}

// Usuals lists the usual mistakes that a model can have, in the order of docs/mistakes.md.
func Usuals(list *order.List) []*Usual {
	var all []*Usual
	for k := range usuals {
		u := &usuals[k]
		if slices.ContainsFunc(list.Entries, func(e order.Entry) bool { return u.Edits(&e) }) && (u.when == nil || u.when(list.Config)) {
			all = append(all, u)
		}
	}
	return all
}

// Needs returns what a run of a model must have to show the mistake.
func (u *Usual) Needs(c *order.Config) Needs {
	if u.needs == nil {
		return Needs{}
	}
	return u.needs(c)
}

// Edits reports whether an entry's operation may have the mistake.
func (u *Usual) Edits(e *order.Entry) bool {
	return e.Op != nil && slices.ContainsFunc(u.at, func(p string) bool { return matches(p, e) })
}

// Opens reports whether a sight has to compute tables and masks, which follow from positions, to see the mistake.
func (u *Usual) Opens() bool { return u.seen != "" }

// ShownBy reports whether an entry may show the mistake of an entry in its cut.
func (u *Usual) ShownBy(e *order.Entry) bool { return u.seen == "" || hooks.Match(u.seen, e.Name) }

// matches reports whether an entry matches a pattern.
func matches(pattern string, e *order.Entry) bool {
	name, form, _ := strings.Cut(pattern, "=")
	rest, any := strings.CutPrefix(name, "*")
	switch {
	case any && !strings.ContainsAny(rest, "*[?"): // most patterns
		if !strings.HasSuffix(e.Name, rest) {
			return false
		}
	case !hooks.Match(name, e.Name):
		return false
	}
	return form == "" || strings.HasPrefix(op.Form(e.Op), form)
}

// Healthy holds the operations of a right cut, each with the entry in which usual mistakes are made.
type Healthy struct {
	s       *subject
	f       *order.Formula
	parts   []order.Part
	call    program.Call
	judge   chosen
	entries []*Entry // by part; nil until needed
	inner   []*edit.Inner
}

// Healthy returns the operations of a right cut. choices are the choices of the arithmetic; nil for the program's own choices.
func (m *Model) Healthy(f *order.Formula, parts []order.Part, call program.Call, choices func(*program.Program) []program.Choice) *Healthy {
	return &Healthy{newSubject(m), f, parts, call, chosen{choices: choices}, make([]*Entry, len(parts)), make([]*edit.Inner, len(parts))}
}

// With makes a usual mistake in the operations of its roles, and changes no other operation of the cut. It is nil if no operation can have the
// mistake, or if the mistake reads a tensor that was not captured.
func (o *Healthy) With(u *Usual) *program.Edited {
	ed, some := edit.NewEditor(o.f.Program), false
	for k := range o.parts {
		if !u.Edits(o.s.m.List.At(o.parts[k].Node)) {
			continue
		}
		e := o.entry(k)
		if e == nil {
			continue
		}
		o.s.err = nil // a tensor that cannot be read cannot be read by mistake
		if d := usualEdit(o.s, u, e); d != nil && edit.Put(ed, o.inner[k], d) {
			some = true
		}
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// usualEdit is the edit of a usual mistake in the program of an operation.
func usualEdit(s *subject, u *Usual, e *Entry) *program.Edited {
	if u.is == nil {
		return u.edit(s, e)
	}
	return s.apply(u.is(s, e), e)
}

// entry returns the entry of an operation; nil if the operation has no program of its own. Inputs that are computed by other operations of the cut
// have no values.
func (o *Healthy) entry(k int) *Entry {
	if o.entries[k] != nil {
		return o.entries[k]
	}
	part := &o.parts[k]
	x, ok := edit.InnerOf(o.f.Program, part.From, part.To, part.In, part.W, part.Out)
	if !ok {
		return nil
	}
	e := &Entry{Node: part.Node, Program: x.Program, Call: o.call, Inputs: part.Inputs, Items: part.Items, Weights: o.s.m.List.At(part.Node).Weights, Judge: o.judge}
	e.Call.In, e.Call.W, e.Call.Some = nil, nil, nil
	for _, v := range part.In {
		in, _ := edit.Given(o.f.Program, v, o.call)
		e.Call.In = append(e.Call.In, in)
	}
	for _, v := range part.W {
		n := o.f.Steps[v.Step].Index()
		if n >= len(o.call.W) {
			return nil
		}
		e.Call.W = append(e.Call.W, o.call.W[n])
	}
	o.entries[k], o.inner[k] = e, x
	return e
}

// chosen is the judge of a healthy entry. Only the choices of the arithmetic are asked for.
type chosen struct {
	Judge
	choices func(*program.Program) []program.Choice
}

func (j chosen) Choices(p *program.Program) []program.Choice {
	if j.choices == nil {
		return p.Own()
	}
	return j.choices(p)
}
