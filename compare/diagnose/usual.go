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

// Usual is one of the usual mistakes of ports in docs/mistakes.md: a [Mistake] of the operations of some roles. A run without mistakes shows what each usual mistake would change in
// it.
type Usual struct {
	Name string // short, without blanks
	Page string // its heading in docs/mistakes.md, as an anchor
	What string // in words

	// at are patterns of the entries whose operations have the mistake, each with what the form of the operation begins with after "=", if that matters.
	at []string
	// seen is the pattern of the entries that may show the mistake. It is empty if these are the entries that have it. If it is set, a sight computes tables and masks, which follow
	// from positions, inside of the cut: one entry reads another table than its neighbours.
	seen  string
	when  func(c *order.Config) bool // whether it is a mistake in a model; nil for always
	needs need                       // what a run has to have to show it; nil for nothing
	// is gives the mistake of an entry, or the zero value if the entry cannot have it. It is nil if no kind of the catalogue expresses the mistake; then edit makes the edit.
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

// Needs is what a run of a model has to have to show it.
func (u *Usual) Needs(c *order.Config) Needs {
	if u.needs == nil {
		return Needs{}
	}
	return u.needs(c)
}

// Edits reports whether an entry's operation may have it.
func (u *Usual) Edits(e *order.Entry) bool {
	return e.Op != nil && slices.ContainsFunc(u.at, func(p string) bool { return matches(p, e) })
}

// Opens reports whether a sight has to compute tables and masks, which follow from positions, to see the mistake.
func (u *Usual) Opens() bool { return u.seen != "" }

// ShownBy reports whether an entry may show the mistake of an entry in its cut.
func (u *Usual) ShownBy(e *order.Entry) bool { return u.seen == "" || hooks.Match(u.seen, e.Name) }

// matches reports whether an entry has a pattern.
func matches(pattern string, e *order.Entry) bool {
	name, form, _ := strings.Cut(pattern, "=")
	rest, any := strings.CutPrefix(name, "*")
	switch {
	case any && !strings.ContainsAny(rest, "*[?"): // as most are
		if !strings.HasSuffix(e.Name, rest) {
			return false
		}
	case !hooks.Match(name, e.Name):
		return false
	}
	return form == "" || strings.HasPrefix(op.Form(e.Op), form)
}

// Healthy are the operations of a cut that is right, each with the entry that its mistakes are made in.
type Healthy struct {
	s       *subject
	f       *order.Formula
	parts   []order.Part
	call    program.Call
	judge   chosen
	entries []*Entry // by part; nil where it was not asked for
	inner   []*edit.Inner
}

// Healthy are the operations of a cut that is right. Choices are those of the arithmetic; nil for the program's own.
func (m *Model) Healthy(f *order.Formula, parts []order.Part, call program.Call, choices func(*program.Program) []program.Choice) *Healthy {
	return &Healthy{newSubject(m), f, parts, call, chosen{choices: choices}, make([]*Entry, len(parts)), make([]*edit.Inner, len(parts))}
}

// With makes a usual mistake in the operations of its roles, and changes no other operation of the cut. It is nil if no operation can have the mistake, or if the mistake reads a
// tensor that was not captured.
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
		o.s.err = nil // what cannot be read cannot be what is read by mistake
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

// entry is the entry of an operation; nil where the operation has no program of its own. Inputs that other operations of the cut compute have no values.
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

// chosen is the judge of an entry that is healthy: nothing but the arithmetic is asked of it.
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
