package propose

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/hooks"
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
		if err := p.take(b.t, b.f, []*role{b.r}, Line{Axes: b.how.axes, By: mapping.ByGuess, Why: why}); err != nil {
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
	for layer, x := range f.f.layers {
		e := operand.layers[layer]
		if e == nil {
			continue
		}
		y, ok := from.given.have[e.Name]
		if !ok {
			continue
		}
		d, err := p.sortedApart(x, y, newReader())
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
		if !has || e == first || e.Layer != first.Layer || !x.dtype.Float() || elementsOf(p.want(e)) != elementsOf(p.want(first)) {
			continue
		}
		for _, how := range p.plainArrangements(x.shape, first) {
			given, err := p.computed.instead(operand, e, how)
			if err != nil {
				return nil, err
			}
			all = append(all, donor{text: layered(e), key: e.Name + "\x00" + how.axes, given: given})
		}
	}
	for _, t := range p.open {
		if t.settled {
			continue
		}
		for _, form := range t.forms {
			for _, way := range p.fits(t, form, operand) {
				if way.pairs || form.last {
					continue
				}
				given, err := p.computed.supposing(t, p.lines(t, form, []*role{operand}, Line{Axes: way.axes}))
				if err != nil {
					return nil, err
				}
				all = append(all, donor{t.text, fmt.Sprintf("%s\x00%p\x00%s", t.text, form, way.axes), t, given})
			}
		}
	}
	return all, nil
}

// plainArrangements are the ways to read a shape as an entry, without rotary pairs. Where its axes are in the order of the entry's, that way is the only one.
func (p *proposer) plainArrangements(have []int, e *order.Entry) []arrangement {
	ways := p.arrangements(have, p.want(e), strings.ReplaceAll(e.Axes, " ", ""), cut{})
	if i := slices.IndexFunc(ways, func(a arrangement) bool { return a.same }); i >= 0 {
		return ways[i : i+1]
	}
	return slices.DeleteFunc(ways, func(a arrangement) bool { return a.pairs })
}

// instead returns c with the numbers of another entry in place of an operand, in all layers of the operand.
func (c *computed) instead(operand *role, other *order.Entry, how arrangement) (*computed, error) {
	more := &computed{p: c.p, weights: c.weights, have: maps.Clone(c.have), made: maps.Clone(c.made)}
	for layer, e := range operand.layers {
		name := mapping.InLayer(layered(other), fmt.Sprint(layer))
		x, ok := c.have[name]
		if !ok {
			delete(more.have, e.Name)
			continue
		}
		n, err := c.p.local.of(x)
		if n == nil || err != nil {
			return more, err
		}
		values := n.plain
		if how.axes != "" {
			l, err := layout.New(how.whole, "")
			if err != nil {
				return nil, err
			}
			if values = arrange(n.plain, x.shape, l); values == nil {
				continue
			}
		}
		more.have[e.Name] = tensor{"instead\x00" + name + "\x00" + how.axes, c.p.want(e), hooks.F64, bytes.NewReader(encoded(values))}
	}
	return more, nil
}

// encoded are the bytes of float64 numbers.
func encoded(values []float64) []byte {
	raw := make([]byte, 0, 8*len(values))
	for _, x := range values {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(x))
	}
	return raw
}
