package propose

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/propose/axes"

	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/order"
)

// A port may read the wrong tensor: a port may rotate queries before their norm, activate up instead of gate, or multiply by the weight of another norm. Its result is then the result of
// an entry with another operand or another weight. The operation is proven by that. The entry is not, so that the line is a guess.

// instead is an open tensor, its entry, and what it is recomputed with.
type instead struct {
	*fit
	with string // "from X in place of Y" or "with the weights of X"
}

// byOtherOperands takes an open tensor if an entry has its values once another tensor is the operand, or once the entry has the weights of another entry. found is how many it took.
func (p *proposer) byOtherOperands(ctx context.Context) (found int, err error) {
	if p.computed == nil {
		return 0, nil
	}
	var all []instead
	for _, r := range p.free {
		if r.taken || r.alone || r.handsOn() || p.echoes(r) || p.another(r) || len(p.fitting(r)) == 0 {
			continue
		}
		p.looking(r.text)
		of, err := p.fromOthers(ctx, r)
		if err != nil {
			return 0, err
		}
		all = append(all, of...)
	}
	for _, b := range p.unambiguous(all) {
		why := "a guess: recomputed " + b.with + ": " + b.counts()
		if err := p.take(b.t, b.f, []*role{b.r}, Line{Axes: b.how.Text, By: mapping.ByGuess, Why: why}); err != nil {
			return found, err
		}
		found++
	}
	return found, nil
}

// unambiguous keeps a tensor that has one entry, if that entry has no other tensor. Two norms make the same of one operand with the same weight. The order of the dump then decides
// which norm the tensor is, if the order is evidence.
func (p *proposer) unambiguous(all []instead) []instead {
	rival := func(a, b instead) bool { return (a.t == b.t) != (a.r == b.r) }
	alone := func(list []instead) (left []instead) {
		for _, a := range list {
			if !slices.ContainsFunc(list, func(b instead) bool { return rival(a, b) }) {
				left = append(left, a)
			}
		}
		return left
	}
	if turns := p.turns(); turns.shown() {
		sure := alone(all)
		for _, a := range slices.Clone(all) {
			if !slices.ContainsFunc(sure, func(b instead) bool { return a == b }) && !turns.allow(a.t, a.r.at) {
				all = slices.DeleteFunc(all, func(b instead) bool { return a == b })
			}
		}
	}
	return alone(all)
}

// fromOthers looks for open tensors that have the values of an entry with another operand, or with other weights. A tensor is in the list once.
func (p *proposer) fromOthers(ctx context.Context, r *role) (all []instead, err error) {
	began := p.work
	defer func() { p.supposed += p.work - began }()
	look := func(key, with string, operand *role, from donor) error {
		if p.tried[key] || p.supposed+p.work-began > mostSupposed {
			return nil
		}
		f, err := p.matching(r, from.t, from.given)
		if err != nil {
			return err
		}
		if f == nil {
			p.tried[key] = true
			return nil
		}
		if operand != nil {
			if same, err := p.moved(f, operand, from); same || err != nil {
				return err
			}
		}
		i := slices.IndexFunc(all, func(o instead) bool { return o.t == f.t })
		if i < 0 {
			all = append(all, instead{f, with})
		} else if best := all[i]; cmp.Or(best.good-f.good, cmp.Compare(f.error, best.error)) < 0 {
			all[i] = instead{f, with}
		}
		return nil
	}
	for _, operand := range p.operandsOf(r) {
		donors, err := p.donors(operand)
		if err != nil {
			return nil, err
		}
		for _, from := range donors {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			key := "instead\x00" + from.key + "\x00" + operand.text + "\x00" + r.text
			if err := look(key, "from "+from.text+" in place of "+operand.text, operand, from); err != nil {
				return nil, err
			}
		}
	}
	donors, err := p.otherWeights(r)
	if err != nil {
		return nil, err
	}
	for _, from := range donors {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := look("weights\x00"+from.key+"\x00"+r.text, "with the weights of "+from.text, nil, from); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// handsOn reports whether an entry has the numbers of its operand in some layer.
func (r *role) handsOn() bool {
	for _, e := range r.layers {
		if e.Op == nil || handsOn(e) {
			return true
		}
	}
	return false
}

// moved reports whether a tensor has the numbers that stand in place of an operand, in any order: no operation tells such a tensor.
func (p *proposer) moved(f *fit, operand *role, from donor) (bool, error) {
	for layer, x := range f.f.Layers {
		e := operand.layers[layer]
		if e == nil {
			continue
		}
		y, ok := from.given.have[e.Name]
		if !ok {
			continue
		}
		d, err := p.values.Sorted(x, y, tensors.NewReader())
		return d == 0, err
	}
	return false, nil
}

// operandsOf are the operands of an entry that are of its layer and no integers.
func (p *proposer) operandsOf(r *role) (all []*role) {
	layers := keysOf(r.layers)
	for k, in := range r.layers[layers[0]].Inputs {
		o := &role{layers: map[int]*order.Entry{}, at: r.at}
		for _, layer := range layers {
			e := r.layers[layer]
			if k >= len(e.Inputs) || e.Inputs[k].Prev {
				continue
			}
			if of, ok := p.list.Lookup(p.behind(e.Inputs[k].Name)); ok && of.Layer == e.Layer && of.Op != nil && isFloat(of) {
				o.layers[layer], o.text = of, layered(of)
			}
		}
		if len(o.layers) > 0 && in.Name != "" {
			all = append(all, o)
		}
	}
	return all
}

// donor is what may stand in place of an operand: a tensor that has an entry, or an open one.
type donor struct {
	text, key string
	t         *template // nil for a tensor that has an entry
	given     *computed
}

// donors lists the tensors with the number of elements of an operand, each in the layout of the operand.
func (p *proposer) donors(operand *role) (all []donor, err error) {
	layers := keysOf(operand.layers)
	first := operand.layers[layers[0]]
	for i := range p.list.Entries {
		e := &p.list.Entries[i]
		x, has := p.computed.have[e.Name]
		if !has || e == first || e.Layer != first.Layer || !x.DType.Float() || tensors.Elements(p.want(e)) != tensors.Elements(p.want(first)) {
			continue
		}
		for _, how := range p.plainArrangements(x.Shape, first) {
			given, err := p.computed.instead(operand, e, how)
			if err != nil {
				return nil, err
			}
			all = append(all, donor{text: layered(e), key: e.Name + "\x00" + how.Text, given: given})
		}
	}
	for _, t := range p.open {
		if t.settled {
			continue
		}
		for _, form := range t.Forms {
			for _, way := range p.fits(t, form, operand) {
				if way.Interleaved || form.Last {
					continue
				}
				given, err := p.computed.supposing(t, p.lines(t, form, []*role{operand}, Line{Axes: way.Text}))
				if err != nil {
					return nil, err
				}
				all = append(all, donor{t.Text, fmt.Sprintf("%s\x00%p\x00%s", t.Text, form, way.Text), t, given})
			}
		}
	}
	return all, nil
}

// plainArrangements are the ways to read a shape as an entry, without rotary pairs. Where its axes are in the order of the entry's, that way is the only one.
func (p *proposer) plainArrangements(have []int, e *order.Entry) []axes.Layout {
	ways := p.arrangements(have, p.want(e), strings.ReplaceAll(e.Axes, " ", ""), axes.Sharding{})
	if i := slices.IndexFunc(ways, func(a axes.Layout) bool { return a.Same }); i >= 0 {
		return ways[i : i+1]
	}
	return slices.DeleteFunc(ways, func(a axes.Layout) bool { return a.Interleaved })
}

// instead returns c with the numbers of another entry in place of an operand, in all layers of the operand.
func (c *computed) instead(operand *role, other *order.Entry, how axes.Layout) (*computed, error) {
	more := &computed{p: c.p, weights: c.weights, have: maps.Clone(c.have), made: maps.Clone(c.made)}
	for layer, e := range operand.layers {
		name := mapping.InLayer(layered(other), fmt.Sprint(layer))
		x, ok := c.have[name]
		if !ok {
			delete(more.have, e.Name)
			continue
		}
		n, err := c.p.values.Dump.Numbers(x)
		if n == nil || err != nil {
			return more, err
		}
		if values := tensors.Arranged(n.Plain, x.Shape, how.Moves()); values != nil {
			more.have[e.Name] = tensors.OfValues("instead\x00"+name+"\x00"+how.Text, c.p.want(e), values)
		}
	}
	return more, nil
}
