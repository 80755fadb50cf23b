package propose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// board has what the steps have found so far, and what is open.
type board struct {
	*evidence
	of       []*template        // by tensor
	open     []*template        // some are settled
	free     []*role            // some are taken
	first    []*role            // all that were free at first
	pairs    []pairing          // in the order in which they were found
	named    map[string]bool    // the entries that have a tensor
	valued   map[string]float64 // by entry with the values of the reference: how far they are
	computed *computed          // nil without a checkpoint
	turned   *turns             // see [board.turns]
	out      Proposal
}

// newBoard has the patterns of a dump. It is an error if they are too many for a map.
func newBoard(ctx context.Context, d traces, list *order.List, passes bool) (*board, error) {
	e := &evidence{model: newModel(d, list), trace: d.trace, ref: d.ref, values: tensors.NewComparison(), inPasses: passes}
	p := &board{evidence: e, named: map[string]bool{}, valued: map[string]float64{}}
	records := d.fitted.Records()
	all, err := p.templatesOf(ctx, list.Config.NumLayers, func(i int) bool { return p.known(records[i]) })
	if err != nil {
		return nil, err
	}
	p.of = make([]*template, len(records))
	for _, q := range all {
		for _, x := range q.All {
			p.of[x.At] = q
		}
		if q.NeedsNoLine {
			p.out.Known += len(q.Sources)
		} else {
			p.open = append(p.open, q)
		}
	}
	if n := len(p.open); n > mapping.MaxRules {
		return nil, hint.Add(fmt.Errorf("the names need %d lines, and a map has at most %d", n, mapping.MaxRules),
			"give the tensors of all layers one name with the number of the layer in it, such as h.0.attn, and leave out what is not a tensor of the model")
	}
	return p, nil
}

// pairing is a tensor that has become an entry.
type pairing struct {
	t     *template
	r     *role // the first of several
	lines []Line
}

// isPlain reports whether a tensor is one entry, and no guess.
func (o pairing) isPlain() bool {
	return len(o.lines) == 1 && len(o.lines[0].To) == 1 && o.lines[0].By == "" && !o.r.alone
}

// take settles what a tensor is.
func (p *board) take(c candidate, l Line) error {
	l.Axes = cmp.Or(l.Axes, c.how.Text)
	return p.takeParts(c.t, c.f, []*role{c.r}, l)
}

// takeParts settles which entries the parts of a tensor are.
func (p *board) takeParts(t *template, f *names.Form, roles []*role, l Line) error {
	lines := p.linesOfParts(t, f, roles, l)
	p.out.Lines = append(p.out.Lines, lines...)
	t.settled = true
	for _, r := range roles {
		r.taken = true
		for layer, e := range r.layers {
			if _, has := f.Layers[layer]; has {
				p.named[e.Name] = true
			}
		}
	}
	p.pairs = append(p.pairs, pairing{t, roles[0], lines})
	if p.computed == nil {
		return nil
	}
	return p.computed.take(t, lines)
}

func (p *board) takeComputed(f *candidate, why string) error {
	return p.take(*f, Line{Why: why, proven: f.good > 1})
}

// choose leaves what a tensor is to a person.
func (p *board) choose(t *template, c Choice) {
	p.out.Choices = append(p.out.Choices, c)
	t.settled = true
}

// forget undoes [board.take] for a tensor.
func (p *board) forget(o pairing) {
	o.t.settled, o.r.taken = false, false
	p.pairs = slices.DeleteFunc(p.pairs, func(x pairing) bool { return x.t == o.t })
	p.out.Lines = slices.DeleteFunc(p.out.Lines, func(l Line) bool {
		return slices.ContainsFunc(o.lines, func(m Line) bool { return m.From == l.From && slices.Equal(m.To, l.To) })
	})
	for _, e := range o.r.layers {
		delete(p.named, e.Name)
		delete(p.valued, e.Name)
		if p.computed != nil {
			delete(p.computed.have, e.Name)
		}
	}
}

// exchanged reports whether a tensor has a known name of another free entry while a second open tensor has a known name of this entry. Then both keep their names: if the port
// confuses the two, the comparison reports it.
func (p *board) exchanged(t *template, r *role) bool {
	if t.Called(r.text) {
		return false
	}
	of := func(t *template, r *role) bool {
		return r.freeFor(t) && t.Called(r.text) && len(p.plainCandidates(t, r)) > 0
	}
	return slices.ContainsFunc(p.free, func(o *role) bool { return o != r && of(t, o) }) &&
		slices.ContainsFunc(p.open, func(o *template) bool { return o != t && !o.settled && of(o, r) })
}

// fitting are the open tensors that have the shape of an entry.
func (p *board) fitting(r *role) []*template {
	return slices.DeleteFunc(slices.Clone(p.open), func(t *template) bool {
		return t.settled || !r.freeFor(t) || r.alone && !p.turns().allow(t, r.at) || !slices.ContainsFunc(t.Forms, func(f *names.Form) bool { return len(p.fits(t, f, r)) > 0 })
	})
}

// nearest sorts the open tensors by their distance from one in the dump: people write a result next to its operands.
func (p *board) nearest(t *template) []*template {
	all, at := slices.Clone(p.open), t.All[0].At
	slices.SortStableFunc(all, func(a, b *template) int { return apart(a.All[0].At, at) - apart(b.All[0].At, at) })
	return all
}

func apart(a, b int) int { return max(a-b, b-a) }

// meant chooses among free entries that follow each other with the same numbers, such as lm_head and logits: the entry of the lowest level.
func (p *board) meant(r *role) *role {
	for _, o := range p.free {
		if o.taken || p.echoes(o) || o.level > r.level || o.at <= r.at || len(o.layers) != len(r.layers) {
			continue
		}
		same := true
		for layer, e := range r.layers {
			next := o.layers[layer]
			same = same && next != nil && next.Op != nil && handsOn(next) && next.Inputs[0].Name == e.Name && slices.Equal(p.want(next), p.want(e))
		}
		if same {
			return p.meant(o)
		}
	}
	return r
}

// behind follows caches, casts and identities back to the entry whose numbers they hand on: in the first pass a cache has the new keys, and a cast changes less than
// the distance that tells tensors apart.
func (p *board) behind(name string) string {
	for {
		e, ok := p.list.Lookup(name)
		if _, has := p.computed.have[name]; has || !ok || e.Op == nil || len(e.Inputs) == 0 || !handsOn(e) {
			return name
		}
		from, ok := p.list.Lookup(e.Inputs[0].Name)
		if !ok || e.Inputs[0].Prev || !slices.Equal(p.want(from), p.want(e)) {
			return name
		}
		name = from.Name
	}
}

// another reports whether an entry hands on the numbers of an entry of a lower level. People dump the entry of the lower level.
func (p *board) another(r *role) bool {
	if p.meant(r) != r {
		return true
	}
	for _, e := range r.layers {
		if e.Op == nil || len(e.Inputs) == 0 || !handsOn(e) {
			return false
		}
		from, ok := p.list.Lookup(e.Inputs[0].Name)
		return ok && from.Level < e.Level && slices.Equal(p.want(from), p.want(e))
	}
	return false
}

// echoes reports whether an entry of no layer hands on the numbers of an entry of a layer that people rather dump, and that has no tensor yet: the input of the
// last norm is the output of the last layer.
func (p *board) echoes(r *role) bool {
	e := r.layers[-1]
	if e == nil || e.Layer >= 0 || e.Op == nil || len(e.Inputs) == 0 || !handsOn(e) {
		return false
	}
	from, ok := p.list.Lookup(e.Inputs[0].Name)
	return ok && from.Layer >= 0 && from.Level <= e.Level && !p.named[from.Name]
}

// valuedBehind reports whether an entry that is computed from another has the values of the reference in the dump, and a tensor at some distance would not give them.
func (p *board) valuedBehind(e *order.Entry, distance float64, steps int) bool {
	for i := range p.list.Entries {
		next := &p.list.Entries[i]
		if next.Layer != e.Layer && next.Layer >= 0 && e.Layer >= 0 || !slices.ContainsFunc(next.Inputs, func(in order.Ref) bool { return in.Name == e.Name && !in.Prev }) {
			continue
		}
		d, valued := p.valued[next.Name]
		if valued && farther*d < distance || steps > 0 && !p.named[next.Name] && p.valuedBehind(next, distance, steps-1) {
			return true
		}
	}
	return false
}

// mostBehind bounds the entries without a tensor between two entries with tensors.
const mostBehind = 6

// farther is how many times farther a tensor has to be from the reference than what is computed from the entry, for it not to be that entry.
const farther = 100

// template is a pattern of names in the dump, and what has become of its tensors.
type template struct {
	*names.Template
	settled  bool      // it has a line or a choice, or is a copy
	entitled bool      // it has the name of an entry, in another layout
	unit     *bool     // see [evidence.unitRows]; nil where nobody has asked
	of       *template // that it was a part of before [singles.alone]; nil for none
}

// templatesOf are the patterns of a dump. layers is 0 where no number of a name is that of a layer; known says which tensors need no line.
func (p *evidence) templatesOf(ctx context.Context, layers int, known func(int) bool) (all []*template, err error) {
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
	alone  bool   // an entry of a single layer; see [singles.alone]
	of     *role  // that it was a part of; nil for none
}

// held is a pass in which a tensor has the name of an entry.
type held struct {
	by   *template
	pass int
}

// freeFor reports whether a tensor may become the entry: no other tensor of the same pass has the entry's name.
func (r *role) freeFor(t *template) bool {
	return !r.taken && !slices.ContainsFunc(r.held, func(h held) bool { return h.by != t && t.InPass(h.pass) })
}

// openTo reports whether a tensor with the numbers of an entry may become that entry. A second tensor may have the entry's name without its numbers: it is then left out.
// If the first tensor also has the name of an entry, the two may be exchanged, and both keep their names.
func (r *role) openTo(t *template) bool { return r.freeFor(t) || !r.taken && !t.entitled }

// roles lists the entries that no tensor of the dump has already.
func (p *board) roles(fitted *capture.Trace) {
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
