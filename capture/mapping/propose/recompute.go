package propose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/order"
)

// byComputing takes the tensors that are what the order computes from tensors with a name, and fused ones, until nothing more is found. What one tensor proves comes
// before what a pair proves. Without weights it takes fused tensors alone.
func (p *proposer) byComputing(ctx context.Context) error {
	if p.computed == nil {
		_, err := p.provenFused(ctx)
		return err
	}
	looks := []func(context.Context) (bool, error){
		func(ctx context.Context) (bool, error) { return p.eachFree(ctx, p.recomputed, false) },
		p.provenFused,
		func(ctx context.Context) (bool, error) { return p.eachFree(ctx, p.pair, true) },
	}
	for k := 0; k < len(looks); k++ {
		found, err := looks[k](ctx)
		if err != nil {
			return err
		}
		if found {
			k = -1
		}
	}
	return nil
}

// eachFree looks at the free entries, all of them or up to the first that is found.
func (p *proposer) eachFree(ctx context.Context, look func(context.Context, *role) (bool, error), first bool) (found bool, err error) {
	for _, r := range p.free {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		if r.taken || p.echoes(r) {
			continue
		}
		p.looking(r.text)
		is, err := look(ctx, r)
		if err != nil {
			return found, err
		}
		if found = found || is; is && first {
			break
		}
	}
	return found, nil
}

// recomputed takes the tensor that is what an entry is computed to be.
func (p *proposer) recomputed(_ context.Context, r *role) (bool, error) {
	f, err := p.matching(r, nil, p.computed)
	if err != nil || f == nil {
		return false, err
	}
	return true, p.takeComputed(f, "recomputed from its operands: "+f.counts())
}

func (f *fit) counts() string {
	return fmt.Sprintf("%d of %d, relative L2 %.1e", f.good, f.of, f.error)
}

func (p *proposer) takeComputed(f *fit, why string) error {
	return p.take(f.t, f.f, []*role{f.r}, Line{Axes: f.how.axes, Why: why, proven: f.good > 1})
}

// pair takes two tensors at once. If one operand of an entry has no tensor yet, pair looks for an open tensor from which another open tensor is recomputed: the first
// is the operand, and the second is the entry.
func (p *proposer) pair(ctx context.Context, r *role) (bool, error) {
	operand, could := p.lacking(r), p.fitting(r)
	if operand == nil || len(could) == 0 {
		return false, nil
	}
	var from, to *fit
	began := p.work
	defer func() {
		if to == nil {
			p.supposed += p.work - began
		}
	}()
	for _, t := range p.nearest(could[0]) {
		if p.supposed+p.work-began > mostSupposed {
			break
		}
		if t.settled || !operand.freeFor(t) || p.exchanged(t, operand) || len(could) == 1 && could[0] == t || operand.alone && !p.turns().allow(t, operand.at) {
			continue
		}
		if unit, err := p.unitRows(t); err != nil {
			return false, err
		} else if unit && isNorm(r) { // it would be the same from the operand and from the norm of the operand
			continue
		}
		for _, form := range t.forms {
			for _, way := range p.fits(t, form, operand) {
				if err := ctx.Err(); err != nil {
					return false, err
				}
				key := fmt.Sprintf("%s\x00%p\x00%s\x00%s\x00%s", t.text, form, way.axes, operand.text, r.text)
				if p.tried[key] { // what else it reads has not changed
					continue
				}
				f := &fit{t: t, f: form, r: operand, how: way.arrangement}
				given, err := p.computed.supposing(t, p.lines(t, form, []*role{operand}, Line{Axes: way.axes}))
				if err != nil {
					return false, err
				}
				g, err := p.matching(r, t, given)
				if err != nil {
					return false, err
				}
				p.tried[key] = g == nil
				if g != nil && (to == nil || cmp.Or(to.good-g.good, cmp.Compare(g.error, to.error)) < 0) {
					from, to = f, g
				}
			}
		}
	}
	if to == nil {
		return false, nil
	}
	if err := p.takeComputed(from, fmt.Sprintf("%s is recomputed from it: %s", r.text, to.counts())); err != nil {
		return false, err
	}
	return true, p.takeComputed(to, fmt.Sprintf("recomputed from %s: %s", from.t.text, to.counts()))
}

// exchanged reports whether a tensor has a known name of another free entry while a second open tensor has a known name of this entry. Then both keep their names: if the port
// confuses the two, the comparison reports it.
func (p *proposer) exchanged(t *template, r *role) bool {
	if t.called(r.text) {
		return false
	}
	of := func(t *template, r *role) bool { return r.freeFor(t) && t.called(r.text) && len(p.plainWays(t, r)) > 0 }
	return slices.ContainsFunc(p.free, func(o *role) bool { return o != r && of(t, o) }) &&
		slices.ContainsFunc(p.open, func(o *template) bool { return o != t && !o.settled && of(o, r) })
}

// mostSupposed is how much may be computed for pairs that are none: some ten seconds on two cores.
const mostSupposed = 1 << 29

// nearest sorts the open tensors by their distance from one in the dump: people write a result next to its operands.
func (p *proposer) nearest(t *template) []*template {
	all, at := slices.Clone(p.open), t.all[0].at
	slices.SortStableFunc(all, func(a, b *template) int { return apart(a.all[0].at, at) - apart(b.all[0].at, at) })
	return all
}

func apart(a, b int) int { return max(a-b, b-a) }

// fitting are the open tensors that have the shape of an entry.
func (p *proposer) fitting(r *role) []*template {
	return slices.DeleteFunc(slices.Clone(p.open), func(t *template) bool {
		return t.settled || !r.freeFor(t) || r.alone && !p.turns().allow(t, r.at) || !slices.ContainsFunc(t.forms, func(f *form) bool { return len(p.fits(t, f, r)) > 0 })
	})
}

// lacking is the free entry without a tensor that an entry reads. It is nil if an entry reads no such entry, or several.
func (p *proposer) lacking(r *role) *role {
	var lacking *role
	for _, layer := range keysOf(r.layers) {
		for _, in := range r.layers[layer].Inputs {
			name := p.behind(in.Name)
			if _, ok := p.computed.have[name]; ok || in.Prev || name == order.PositionIDs {
				continue
			}
			i := slices.IndexFunc(p.free, func(o *role) bool {
				e := o.layers[layer]
				return !o.taken && e != nil && e.Name == name
			})
			if i < 0 || lacking != nil && lacking != p.free[i] {
				return nil
			}
			lacking = p.free[i]
		}
	}
	if lacking == nil {
		return nil
	}
	return p.meant(lacking)
}

// behind follows caches, casts and identities back to the entry whose numbers they hand on: in the first pass a cache has the new keys, and a cast changes less than
// the distance that tells tensors apart.
func (p *proposer) behind(name string) string {
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

// handsOn reports whether an entry has the numbers of its operand.
func handsOn(e *order.Entry) bool {
	return slices.Contains([]string{"cache", "cast", "identity"}, e.Op.Kind())
}

// meant chooses among free entries that follow each other with the same numbers, such as lm_head and logits: the entry of the lowest level.
func (p *proposer) meant(r *role) *role {
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

// matching finds the open tensor whose values an entry is computed to have. It is nil if no tensor has them, or several have them. The tensor without is not looked at.
func (p *proposer) matching(r *role, without *template, c *computed) (*fit, error) {
	if some, err := c.some(r); !some || err != nil {
		return nil, err
	}
	r = p.meant(r)
	var all []fit
	for _, t := range p.open {
		if t.settled || t == without || !r.openTo(t) || p.exchanged(t, r) {
			continue
		}
		for _, form := range t.forms {
			f, err := p.bestOf(t, form, r, c.of)
			if err != nil {
				return nil, err
			}
			if f.good > 0 && 2*f.good >= f.of {
				f.named = t.called(r.text)
				all = append(all, f)
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b fit) int {
		return cmp.Or(b.good-a.good, btoi(b.named)-btoi(a.named), cmp.Compare(a.error, b.error))
	})
	for _, f := range all[1:] {
		if f.good != all[0].good || f.named != all[0].named || f.error > clearly*all[0].error {
			break
		}
		if same, err := p.copied(f.t, all[0].t); err != nil || f.t != all[0].t && !same {
			return nil, err
		}
	}
	return &all[0], nil
}

// some reports whether an entry can be computed in some layer.
func (c *computed) some(r *role) (bool, error) {
	for _, layer := range keysOf(r.layers) {
		if _, ok, err := c.of(r.layers[layer]); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
