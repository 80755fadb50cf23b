// Package mistakes has the usual mistakes of ports as edits of programs: each heading of docs/mistakes.md that is one, as a definite
// change of the steps of some entries. So it can be asked of a healthy run what each of them would have made of it.
//
// The table is data: which entries, which steps, and one of a few changes that are the same for all operations, such as another
// number, another weight, or an operation left out.
package mistakes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Mistake is one of the usual mistakes.
type Mistake struct {
	Name string // short, without spaces
	Page string // its heading in docs/mistakes.md, as an anchor
	What string // in words

	// at are patterns of the entries whose steps are edited, each with what the form of the operation begins with after "=", if
	// that matters.
	at []string
	// inputs is how many inputs the edit reads by their number, and axes how many axes of the result. A step of a recorded program may have the name,
	// and another operation.
	inputs, axes int
	// seen is the pattern of the entries in which it shows; empty for those that are edited. What these are computed from by
	// positions alone is then computed too: one entry reads another table than its neighbours.
	seen string
	when func(c *order.Config) bool // whether it is a mistake in a model; nil for always
	// needs is what a run has to have to show it; nil for nothing.
	needs func(c *order.Config) Needs
	edit  change
}

// Model is what a run is of.
type Model struct {
	List    *order.List
	Passes  []order.Pass
	DType   hooks.DType
	Weights func(order.Weight) (program.Rows, error)
	// Read returns a captured tensor; ok is false where there is none.
	Read func(order.Node) (v program.Value, ok bool)
}

// Needs is what a run has to have to show a mistake.
type Needs struct {
	Tokens int    // in one pass
	Total  int    // in all passes together
	Before int    // in the passes before the last
	Steps  int    // passes after the first
	ID     int    // a token id that is at least this
	DType  string // that the model is computed in
	Never  string // what a checkpoint has to have, whatever the run
}

// Run is what of a run decides what it can show.
type Run struct {
	Passes []order.Pass
	IDs    [][]int
	DType  hooks.DType
}

// Lacks says what a run lacks of what a mistake needs; empty where it lacks nothing.
func (n Needs) Lacks(r Run) string {
	longest, total, id := 0, 0, -1
	for k, p := range r.Passes {
		longest, total = max(longest, p.Tokens), total+p.Tokens
		if k < len(r.IDs) {
			id = max(id, slices.Max(append(slices.Clone(r.IDs[k]), -1)))
		}
	}
	before := 0
	if last := len(r.Passes) - 1; last >= 0 {
		before = total - r.Passes[last].Tokens
	}
	steps := len(r.Passes) - 1
	switch {
	case n.Never != "":
		return "a checkpoint with " + n.Never
	case longest < n.Tokens:
		return fmt.Sprintf("a prompt of at least %d tokens", n.Tokens)
	case total < n.Total:
		return fmt.Sprintf("a prompt of at least %d tokens", n.Total)
	case steps < n.Steps && n.Before > 0:
		return fmt.Sprintf("%s after a prompt of at least %d tokens", steppings(n.Steps), n.Before)
	case steps < n.Steps:
		return steppings(n.Steps)
	case before < n.Before:
		return fmt.Sprintf("a decode step after at least %d tokens", n.Before)
	case id < n.ID:
		return fmt.Sprintf("a token id of at least %d", n.ID)
	case n.DType != "" && n.DType != r.DType.String():
		return n.DType
	}
	return ""
}

func steppings(n int) string {
	if n == 1 {
		return "a decode step"
	}
	return fmt.Sprintf("%d decode steps", n)
}

// Needs is what a run of a model has to have to show it.
func (k *Mistake) Needs(c *order.Config) Needs {
	if k.needs == nil {
		return Needs{}
	}
	return k.needs(c)
}

// In lists the mistakes that a model can have, in the order of docs/mistakes.md.
func In(list *order.List) []*Mistake {
	var all []*Mistake
	for i := range table {
		k := &table[i]
		if slices.ContainsFunc(list.Entries, func(e order.Entry) bool { return k.Edits(&e) }) && (k.when == nil || k.when(list.Config)) {
			all = append(all, k)
		}
	}
	return all
}

// Edits reports whether the steps of an entry are edited.
func (k *Mistake) Edits(e *order.Entry) bool {
	return e.Op != nil && slices.ContainsFunc(k.at, func(p string) bool { return matches(p, e) })
}

// Opens reports whether what follows from positions alone has to be computed to see it.
func (k *Mistake) Opens() bool { return k.seen != "" }

// ShownBy reports whether an entry may show it, whose cut has an entry that is edited.
func (k *Mistake) ShownBy(e *order.Entry) bool { return k.seen == "" || hooks.Match(k.seen, e.Name) }

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

// reads reports whether what an entry has of a program has the inputs and axes that the edit goes by.
func (k *Mistake) reads(p *order.Part) bool {
	return len(p.In) >= k.inputs && len(p.Out.Shape()) >= k.axes
}

// Apply is a cut's program with the mistake in it; nil where there is nothing to be edited, or where the edit has nothing to go by in
// this run.
func (k *Mistake) Apply(m *Model, f *order.Formula, parts []order.Part, call program.Call) *program.Edited {
	e := f.Edit()
	some := false
	for i := range parts {
		entry := &m.List.Entries[parts[i].Entry]
		if !k.Edits(entry) {
			continue
		}
		if !k.reads(&parts[i]) {
			continue
		}
		s := &spot{Editor: e, Part: &parts[i], m: m, p: f.Program, call: call, entry: entry, last: i == len(parts)-1}
		if k.edit(s) {
			some = true
		}
	}
	if !some {
		return nil
	}
	d, err := e.End()
	if err != nil {
		return nil
	}
	return d
}
