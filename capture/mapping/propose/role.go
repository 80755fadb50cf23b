package propose

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// template is a pattern of names in the dump, and what has become of its tensors.
type template struct {
	*names.Template
	settled  bool      // it has a line or a choice, or is a copy
	entitled bool      // it has the name of an entry, in another layout
	unit     *bool     // see [proposer.unitRows]; nil where nobody has asked
	of       *template // that it was a part of before [proposer.alone]; nil for none
}

// templatesOf are the patterns of a dump. layers is 0 where no number of a name is that of a layer; known says which tensors need no line.
func (p *proposer) templatesOf(ctx context.Context, layers int, known func(int) bool) (all []*template, err error) {
	found, err := names.Templates(ctx, p.trace, layers, known, p.inPasses)
	for _, t := range found {
		all = append(all, &template{Template: t})
	}
	return all, err
}

// role is an entry in all layers that have it.
type role struct {
	text   string
	layers map[int]*order.Entry // −1 for one outside of layers
	at     int                  // in the order
	level  int                  // lowest capture level of its entries; of two roles with the same values, the role of the lower level is meant
	taken  bool
	held   []held // the tensors that have its name in another layout
	alone  bool   // an entry of one layer, by itself; see [proposer.alone]
	of     *role  // that it was a part of; nil for none
}

// held is a pass in which a tensor has the name of an entry.
type held struct {
	by   *template
	pass int
}

// freeFor reports whether a tensor may become an entry: none has its name in the same pass, but this one itself.
func (r *role) freeFor(t *template) bool {
	return !r.taken && !slices.ContainsFunc(r.held, func(h held) bool { return h.by != t && t.InPass(h.pass) })
}

// openTo reports whether a tensor with the numbers of an entry may become that entry. A second tensor may have the entry's name without its numbers: it is then left out.
// If the first tensor also has the name of an entry, the two may be exchanged, and both keep their names.
func (r *role) openTo(t *template) bool { return r.freeFor(t) || !r.taken && !t.entitled }

// roles lists the entries that no tensor of the dump has already.
func (p *proposer) roles(fitted *capture.Trace) {
	named := map[string][]held{}
	for i, rec := range fitted.Records() {
		if h := (held{p.of[i], rec.Pass}); rec.Firing == 0 { // what a line makes is the first of its name
			named[rec.Name] = append(named[rec.Name], h)
			if _, ok := p.list.Lookup(rec.Name); ok {
				h.by.entitled = true
			}
		}
	}
	found := map[string]*role{}
	for i := range p.list.Entries {
		e := &p.list.Entries[i]
		rec, has := fitted.Lookup(0, e.Name)
		if has && p.known(rec) || e.Name == order.InputIDs {
			continue
		}
		text := layered(e)
		r := found[text]
		if r == nil {
			r = &role{text: text, layers: map[int]*order.Entry{}, at: i, level: e.Level}
			found[text] = r
			p.free = append(p.free, r)
		}
		r.layers[e.Layer] = e
		for _, h := range named[e.Name] {
			if !slices.Contains(r.held, h) {
				r.held = append(r.held, h)
			}
		}
	}
}
