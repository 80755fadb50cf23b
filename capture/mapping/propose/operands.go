package propose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/axes"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// A port may read the wrong tensor: a port may rotate queries before their norm, activate up instead of gate, or multiply by the weight of another norm. Its result is then the result of
// an entry with another operand or another weight. The operation is proven by that. The entry is not, so that the line is a guess.

// instead is an open tensor, its entry, and what it is recomputed with.
type instead struct {
	*candidate
	with string // "from X in place of Y" or "with the weights of X"
}

// byOtherOperands takes an open tensor if an entry has its values once another tensor is the operand, or once the entry has the weights of another entry. found is how many it took.
func (p operandSearch) byOtherOperands(ctx context.Context) (found int, err error) {
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
		if err := p.take(*b.candidate, Line{By: mapping.ByGuess, Why: why}); err != nil {
			return found, err
		}
		found++
	}
	return found, nil
}

// unambiguous keeps a tensor that has one entry, if that entry has no other tensor. Two norms make the same of one operand with the same weight. The order of the dump then decides
// which norm the tensor is, if the order is evidence.
func (p operandSearch) unambiguous(all []instead) []instead {
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
func (p operandSearch) fromOthers(ctx context.Context, r *role) (all []instead, err error) {
	began := p.computed.effort.work
	defer func() { p.supposed += p.computed.effort.work - began }()
	look := func(from donor) error {
		key := from.key + "\x00" + r.text
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.tried[key] || p.supposed+p.computed.effort.work-began > mostSupposed {
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
		if same, err := p.moved(f, from); same || err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(o instead) bool { return o.t == f.t })
		if i < 0 {
			all = append(all, instead{f, from.with})
		} else if best := all[i]; cmp.Or(best.good-f.good, cmp.Compare(f.error, best.error)) < 0 {
			all[i] = instead{f, from.with}
		}
		return nil
	}
	lookAt := func(donors []donor, err error) error {
		for _, from := range donors {
			if err := look(from); err != nil {
				return err
			}
		}
		return err
	}
	for _, operand := range p.operandsOf(r) {
		if err := lookAt(p.donors(operand)); err != nil {
			return nil, err
		}
	}
	return all, lookAt(p.otherWeights(r))
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
func (p operandSearch) moved(f *candidate, from donor) (bool, error) {
	if from.operand == nil {
		return false, nil
	}
	for layer, x := range f.f.Layers {
		e := from.operand.layers[layer]
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
func (p operandSearch) operandsOf(r *role) (all []*role) {
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

// donor is what may stand in place of an operand, or of weights.
type donor struct {
	with, key string    // for people, and to know the supposition again
	operand   *role     // nil for different weights
	t         *template // nil for a tensor that has an entry
	given     *computed
}

// donors lists the tensors with the number of elements of an operand, each in the layout of the operand.
func (p operandSearch) donors(operand *role) (all []donor, err error) {
	layers := keysOf(operand.layers)
	first := operand.layers[layers[0]]
	instead := func(name string) string { return "from " + name + " in place of " + operand.text }
	key := func(of string) string { return "instead\x00" + of + "\x00" + operand.text }
	for i := range p.list.Entries {
		e := &p.list.Entries[i]
		x, has := p.computed.have[e.Name]
		if !has || e == first || e.Layer != first.Layer || !x.DType.Float() || tensors.Elements(p.want(e)) != tensors.Elements(p.want(first)) {
			continue
		}
		for _, how := range p.plainLayouts(x.Shape, first) {
			given, err := p.computed.instead(operand, e, how)
			if err != nil {
				return nil, err
			}
			all = append(all, donor{instead(layered(e)), key(e.Name + "\x00" + how.Text), operand, nil, given})
		}
	}
	for _, t := range p.open {
		if t.settled {
			continue
		}
		for _, form := range t.Forms {
			for _, c := range p.fits(t, form, operand) {
				if c.how.Interleaved || form.Last {
					continue
				}
				given, err := p.computed.supposing(t, p.lines(c, Line{}))
				if err != nil {
					return nil, err
				}
				all = append(all, donor{instead(t.Text), key(fmt.Sprintf("%s\x00%p\x00%s", t.Text, form, c.how.Text)), operand, t, given})
			}
		}
	}
	return all, nil
}

// instead returns c with the numbers of another entry in place of an operand, in all layers of the operand.
func (c *computed) instead(operand *role, other *order.Entry, how axes.Layout) (*computed, error) {
	more := c.clone()
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

// otherWeights lists the entries of the same layer whose operation is the same and whose weights have the same shapes: their weights may stand in place of those of an entry. It lists
// nothing where the entry cannot be computed.
func (p operandSearch) otherWeights(r *role) (all []donor, err error) {
	first := r.layers[keysOf(r.layers)[0]]
	x, ok, err := p.computed.of(first)
	if !ok || err != nil || len(first.Weights) == 0 {
		return nil, err
	}
	for i := range p.list.Entries {
		e := &p.list.Entries[i]
		if e == first || e.Layer != first.Layer || e.Op == nil || e.Op.Kind() != first.Op.Kind() || !sameShapes(e.Weights, first.Weights) {
			continue
		}
		all = append(all, donor{with: "with the weights of " + layered(e), key: "weights\x00" + e.Name + "\x00" + x.Key, given: p.computed.withWeights(r, e)})
	}
	return all, nil
}

// sameShapes reports whether two operations have as many weights, with the same shapes and other names.
func sameShapes(a, b []order.Weight) bool {
	return slices.EqualFunc(a, b, func(x, y order.Weight) bool { return x.Name != y.Name && slices.Equal(x.Shape, y.Shape) })
}

// withWeights returns c, but an entry has the weights of another entry in all layers.
func (c *computed) withWeights(r *role, other *order.Entry) *computed {
	of := map[string]order.Weight{}
	for layer, e := range r.layers {
		o, ok := c.p.list.Lookup(mapping.InLayer(layered(other), fmt.Sprint(layer)))
		if !ok || !sameShapes(o.Weights, e.Weights) {
			continue
		}
		for i, w := range e.Weights {
			of[w.Name] = o.Weights[i]
		}
	}
	weights := func(w order.Weight) (program.Rows, error) {
		if o, ok := of[w.Name]; ok {
			w = o
		}
		return c.weights(w)
	}
	more := c.clone()
	more.weights, more.made = weights, map[string]expected{}
	return more
}
