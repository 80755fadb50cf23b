package propose

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/order"
)

// Some names have no layers: an exporter counts its operations through the model, linear_7, and an engine counts the layers of a class, rotary_embedding_1. A number
// of such a name is no layer's, or it is by chance. So the steps look once more at what is open, now at single tensors and at the entries of single layers.

// alone splits the open patterns into single tensors, and the free roles into single entries.
func (p singles) alone(ctx context.Context) error {
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

// together undoes [singles.alone] for each pattern without a tensor that was taken, and for each role without an entry that was taken.
func (p singles) together(context.Context) error {
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

// apart splits a role into its entries that have no tensor yet. A role outside of layers stays whole.
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
