package propose

import (
	"context"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/order"
)

// Some names have no layers: an exporter counts its operations through the model, linear_7, and an engine counts the layers of a class, rotary_embedding_1. A number
// of such a name is no layer's, or it is by chance. So the steps look once more at what is open, now at single tensors and at the entries of single layers.

// alone splits the open patterns into single tensors, and the free roles into single entries.
func (p *proposer) alone(ctx context.Context) error {
	if p.ref == nil && p.computed == nil || inList(p.trace) { // without values nothing tells single tensors apart; the elements of a list are layers or passes
		return nil
	}
	known := func(i int) bool { return p.of[i].NeedsNoLine || p.of[i].settled }
	all, err := p.templatesOf(ctx, 0, known)
	if err != nil {
		return err
	}
	open := slices.DeleteFunc(p.open, func(t *template) bool { return !t.settled })
	for _, t := range all {
		if slices.ContainsFunc(t.All, func(x *names.Occurrence) bool { return known(x.At) }) {
			continue
		}
		t.AddLastRows(p.tokens)
		t.of = p.of[t.All[0].At]
		open = append(open, t)
	}
	for _, t := range open {
		for _, x := range t.All {
			p.of[x.At] = t
		}
	}
	p.open = open
	var free []*role
	for _, r := range p.free {
		free = append(free, r.apart(p.list, p.named)...)
	}
	p.free, p.supposed = free, 0
	return nil
}

// together undoes [proposer.alone] for a pattern of which no tensor was taken, and for a role of which no entry was taken.
func (p *proposer) together(context.Context) error {
	helped := map[*template]bool{}
	for _, t := range p.open {
		helped[t.of] = helped[t.of] || t.settled
	}
	var open []*template
	for _, t := range p.open {
		if t.of != nil && !helped[t.of] {
			t = t.of
		}
		if !slices.Contains(open, t) {
			open = append(open, t)
		}
	}
	taken := map[*role]bool{}
	for _, r := range p.free {
		taken[r.of] = taken[r.of] || r.taken
	}
	var free []*role
	for _, r := range p.free {
		if r.of != nil && !taken[r.of] && !r.of.taken {
			r = r.of
		}
		if !slices.Contains(free, r) {
			free = append(free, r)
		}
	}
	p.open, p.free = open, free
	return nil
}

// joinLines writes one line for the single tensors of a pattern, if each tensor has become the entry of its own layer and all have one layout.
func (p *proposer) joinLines() {
	type split struct {
		t *template
		r *role
	}
	all := map[split][]pairing{}
	for _, o := range p.pairs {
		if o.t.of != nil && o.r.of != nil && len(o.lines) == 1 && len(o.t.All) == 1 {
			k := split{o.t.of, o.r.of}
			all[k] = append(all[k], o)
		}
	}
	for k, single := range all {
		line := single[0].lines[0]
		if len(single) < 2 || len(single) != len(k.t.All) || !mapping.OfLayers(k.t.Text) {
			continue
		}
		same := !slices.ContainsFunc(single, func(o pairing) bool {
			l, layer := o.lines[0], p.list.Entries[o.r.at].Layer
			own := slices.ContainsFunc(k.t.All, func(x *names.Occurrence) bool { return x.At == o.t.All[0].At && x.Best.Layer == layer+k.t.From })
			return !own || k.t.From > 0 || l.By != line.By || l.Axes != line.Axes || l.Split+l.Join+l.Ring+l.Pass+l.Rows != ""
		})
		i := slices.IndexFunc(p.out.Lines, func(l Line) bool { return l.From == line.From && slices.Equal(l.To, line.To) })
		if !same || i < 0 {
			continue
		}
		l := &p.out.Lines[i]
		l.From, l.To, l.Why = k.t.Text, []string{k.r.text}, line.Why+" ("+line.From+", and the other layers alike)"
		for _, o := range single[1:] {
			p.out.Lines = slices.DeleteFunc(p.out.Lines, func(l Line) bool { return l.From == o.lines[0].From && slices.Equal(l.To, o.lines[0].To) })
		}
	}
}

// echoes reports whether an entry of no layer hands on the numbers of an entry of a layer that people rather dump, and that has no tensor yet: the input of the
// last norm is the output of the last layer.
func (p *proposer) echoes(r *role) bool {
	e := r.layers[-1]
	if e == nil || e.Layer >= 0 || e.Op == nil || len(e.Inputs) == 0 || !handsOn(e) {
		return false
	}
	from, ok := p.list.Lookup(e.Inputs[0].Name)
	return ok && from.Layer >= 0 && from.Level <= e.Level && !p.named[from.Name]
}

// apart splits a role into those of its entries that have no tensor yet. A role that has no layers stays whole.
func (r *role) apart(list *order.List, named map[string]bool) (all []*role) {
	if _, model := r.layers[-1]; model {
		return []*role{r}
	}
	for _, layer := range keysOf(r.layers) {
		e := r.layers[layer]
		if !named[e.Name] {
			all = append(all, &role{text: e.Name, layers: map[int]*order.Entry{-1: e}, at: list.Index(e.Name), level: e.Level, alone: true, of: r})
		}
	}
	return all
}

// inSeries reports whether an entry of one layer goes on with a count: the dump has h1 and h2, h1 is the output of layer 0, and the entry is that of layer 1.
func (p *proposer) inSeries(t *template, r *role) bool {
	e := p.list.Entries[r.at]
	for _, m := range names.NumberText.FindAllStringIndex(t.Text, names.MaxReadings) {
		n, err := strconv.Atoi(t.Text[m[0]:m[1]])
		if err != nil {
			continue
		}
		for _, o := range p.pairs {
			of := &p.list.Entries[o.r.at]
			name := t.Text[:m[0]] + strconv.Itoa(n-e.Layer+of.Layer) + t.Text[m[1]:]
			if o.r.alone && o.t.Text == name && of.Layer != e.Layer && layered(of) == layered(&e) {
				return true
			}
		}
	}
	return false
}

// turns compares the order of the dump with the order of computing, for the tensors that have become entries.
type turns struct {
	before []bits      // by entry: the entries that it is computed from
	at     map[int]int // by entry: where its tensor stands in the dump
	kept   bool        // each tensor follows its operands
	pairs  int         // how many pairings were looked at
}

// bits is a set of entries.
type bits []uint64

func (b bits) has(entry int) bool { return b[entry/64]>>(entry%64)&1 == 1 }

// leastTurns is how many tensors have to stand in the order of computing before the order of the dump counts as evidence.
const leastTurns = 8

// turns looks at the tensors that have become entries so far.
func (p *proposer) turns() *turns {
	if p.turned == nil {
		p.turned = &turns{before: p.operands(), pairs: -1}
	}
	t := p.turned
	if t.pairs == len(p.pairs) {
		return t
	}
	t.at, t.kept, t.pairs = map[int]int{}, true, len(p.pairs)
	for _, o := range p.pairs {
		for _, x := range o.t.All {
			if e := o.r.layers[x.Best.Layer]; e != nil && x.Record.Pass == 0 {
				t.at[p.list.Index(e.Name)] = x.At
			}
		}
	}
	for entry, at := range t.at {
		for other, y := range t.at {
			if t.before[entry].has(other) && y > at {
				t.kept = false
			}
		}
	}
	return t
}

// operands are the ancestors of each entry in one pass.
func (p *proposer) operands() []bits {
	all, words := make([]bits, len(p.list.Entries)), (len(p.list.Entries)+63)/64
	for i := range p.list.Entries { // operands stand first
		all[i] = make(bits, words)
		for _, in := range p.list.Entries[i].Inputs {
			from := p.list.Index(in.Name)
			if in.Prev || from < 0 {
				continue
			}
			all[i][from/64] |= 1 << (from % 64)
			for k, w := range all[from] {
				all[i][k] |= w
			}
		}
	}
	return all
}

// shown reports whether the order of the dump is evidence.
func (t *turns) shown() bool { return t.kept && len(t.at) >= leastTurns }

// allow reports whether a tensor may be an entry: it stands behind what the entry is computed from, and before what is computed from the entry.
func (t *turns) allow(x *template, entry int) bool {
	if !t.kept {
		return false
	}
	for other, at := range t.at {
		if t.before[entry].has(other) && at > x.All[0].At || t.before[other].has(entry) && at < x.All[0].At {
			return false
		}
	}
	return true
}
