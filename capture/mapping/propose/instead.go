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

// A port may read the wrong tensor: a port may rotate queries before their norm, or activate up instead of gate. Its result is then the result of an entry with another
// operand. The operation is proven by that. The entry is not, so that the line is a guess.

// instead is an open tensor, its entry, the operand from which it is recomputed (from), and the operand of the order (in).
type instead struct {
	*fit
	from, in string
}

// byOtherOperands takes open tensors that are recomputed as an entry when one operand is replaced by another tensor. found is their number.
func (p *proposer) byOtherOperands(ctx context.Context) (found int, err error) {
	if p.computed == nil {
		return 0, nil
	}
	of := map[*template][]instead{}
	for _, r := range p.free {
		if r.taken || r.alone || r.handsOn() || p.echoes(r) || p.another(r) || len(p.fitting(r)) == 0 {
			continue
		}
		p.looking(r.text)
		best, err := p.fromOthers(ctx, r)
		if err != nil {
			return 0, err
		}
		if best != nil {
			of[best.t] = append(of[best.t], *best)
		}
	}
	for _, t := range p.open {
		if len(of[t]) != 1 { // two norms with the same weights make the same of one tensor
			continue
		}
		b := of[t][0]
		why := fmt.Sprintf("a guess: recomputed from %s in place of %s: %s", b.from, b.in, b.counts())
		if err := p.take(b.t, b.f, []*role{b.r}, Line{Axes: b.how.axes, By: mapping.ByGuess, Why: why}); err != nil {
			return found, err
		}
		found++
	}
	return found, nil
}

// fromOthers looks for the open tensor that an entry is with another operand; nil for none, and where operands give several.
func (p *proposer) fromOthers(ctx context.Context, r *role) (best *instead, err error) {
	began := p.work
	defer func() { p.supposed += p.work - began }()
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
			if p.tried[key] || p.supposed+p.work-began > mostSupposed {
				continue
			}
			f, err := p.matching(r, from.t, from.given)
			if err != nil {
				return nil, err
			}
			if f == nil {
				p.tried[key] = true
				continue
			}
			if same, err := p.moved(f, operand, from); same || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
			if best != nil && best.t != f.t {
				return nil, nil
			}
			if best == nil || cmp.Or(best.good-f.good, cmp.Compare(f.error, best.error)) < 0 {
				best = &instead{f, from.text, operand.text}
			}
		}
	}
	return best, nil
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
