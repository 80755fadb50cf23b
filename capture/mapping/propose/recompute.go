package propose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
)

// byComputing takes the tensors whose values the order computes from named tensors, and the fused tensors, until a round finds no tensor. A single tensor is proven
// before a pair of tensors is. Without weights byComputing takes only fused tensors.
func (p *recomputing) byComputing(ctx context.Context) error {
	if p.computed == nil {
		_, err := fusedSearch{p.board}.provenFused(ctx)
		return err
	}
	looks := []func(context.Context) (bool, error){
		func(ctx context.Context) (bool, error) { return p.eachFree(ctx, p.recomputed, false) },
		fusedSearch{p.board}.provenFused,
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

// eachFree calls look with the free entries in turn, to the end or to the first find.
func (p *recomputing) eachFree(ctx context.Context, look func(context.Context, *role) (bool, error), first bool) (found bool, err error) {
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
func (p *recomputing) recomputed(_ context.Context, r *role) (bool, error) {
	f, err := p.matching(r, nil, p.computed)
	if err != nil || f == nil {
		return false, err
	}
	return true, p.takeComputed(f, "recomputed from its operands: "+f.counts())
}

// pair takes two tensors at once. If one operand of an entry has no tensor yet, pair looks for an open tensor from which another open tensor is recomputed: the first
// is the operand, and the second is the entry.
func (p *recomputing) pair(ctx context.Context, r *role) (bool, error) {
	could := p.fitting(r)
	if len(could) == 0 {
		return false, nil
	}
	operand, err := p.lacking(r)
	if operand == nil || err != nil {
		return false, err
	}
	var all []couple
	began := p.computed.effort.work
	defer func() {
		if len(all) == 0 {
			p.supposed += p.computed.effort.work - began
		}
	}()
	for _, t := range p.nearest(could[0]) {
		if p.supposed+p.computed.effort.work-began > mostSupposed {
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
		for _, form := range t.Forms {
			for _, from := range p.fits(t, form, operand) {
				if err := ctx.Err(); err != nil {
					return false, err
				}
				key := fmt.Sprintf("%s\x00%p\x00%s\x00%s\x00%s", t.Text, form, from.how.Text, operand.text, r.text)
				if p.tried[key] { // what else it reads has not changed
					continue
				}
				c, err := p.suppose(&from, r)
				if err != nil {
					return false, err
				}
				if p.tried[key] = c == nil; c != nil {
					all = append(all, *c)
				}
			}
		}
	}
	best, err := p.surest(all)
	if best == nil || err != nil {
		return false, err
	}
	from, to := best.from, best.to
	if err := p.takeComputed(from, fmt.Sprintf("%s is recomputed from it: %s", r.text, to.counts())); err != nil {
		return false, err
	}
	return true, p.takeComputed(to, fmt.Sprintf("recomputed from %s: %s", from.t.Text, to.counts()))
}

// couple is a tensor that is taken for an operand, and a tensor with the values that an entry has for this operand.
type couple struct {
	from, to *candidate
	apart    float64 // distance of the operand from what it should be
}

// suppose takes a tensor for the operand of an entry, and looks for the tensor whose values the entry then has; nil if no tensor has them.
func (p *recomputing) suppose(from *candidate, r *role) (*couple, error) {
	given, err := p.computed.supposing(from.t, p.lines(*from, Line{}))
	if err != nil {
		return nil, err
	}
	to, err := p.matching(r, from.t, given)
	if to == nil || err != nil {
		return nil, err
	}
	if same, err := p.sameNumbers(from.f, to.f); same || err != nil { // so have two copies of any tensor
		return nil, err
	}
	apart, err := p.nearness(*from)
	return &couple{from, to, apart}, err
}

// surest is the couple with the most layers and the least error. Often several couples have these: a norm normalises head after head, so that any order of heads gives the same error.
// Then the operand that is nearest to its entry decides, if the next operand is twice as far away. Otherwise it is nil.
func (p *recomputing) surest(all []couple) (*couple, error) {
	slices.SortStableFunc(all, func(a, b couple) int {
		return cmp.Or(b.to.good-a.to.good, cmp.Compare(a.to.error, b.to.error))
	})
	if len(all) == 0 {
		return nil, nil
	}
	good := slices.DeleteFunc(slices.Clone(all), func(c couple) bool {
		return c.to.good < all[0].to.good || c.to.error > tensors.Clearly*all[0].to.error
	})
	slices.SortStableFunc(good, func(a, b couple) int { return cmp.Compare(a.apart, b.apart) })
	for _, c := range good[1:] {
		if c.apart > 2*good[0].apart {
			break
		}
		copied, err := p.isCopy(c.from.t, good[0].from.t)
		if err != nil {
			return nil, err
		}
		if same := c.from.t == good[0].from.t && c.from.how.Whole == good[0].from.how.Whole; !same && (!copied || c.apart != good[0].apart) {
			return nil, nil
		}
	}
	return &good[0], nil
}

// mostSupposed bounds the work for pairs that do not match: some ten seconds on two cores.
const mostSupposed = 1 << 29

// lacking is the only free entry that an entry reads. If an entry reads several free entries, lacking is the only one of them that cannot be computed. Otherwise it is nil.
func (p *recomputing) lacking(r *role) (*role, error) {
	var all, unknown []*role
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
			if i < 0 {
				return nil, nil
			}
			o := p.free[i]
			_, follows, err := p.computed.of(o.layers[layer])
			if err != nil {
				return nil, err
			}
			if !slices.Contains(all, o) {
				all = append(all, o)
			}
			if !follows && !slices.Contains(unknown, o) {
				unknown = append(unknown, o)
			}
		}
	}
	if len(all) == 1 {
		return p.meant(all[0]), nil
	}
	if len(unknown) == 1 {
		return p.meant(unknown[0]), nil
	}
	return nil, nil
}

// matching finds the open tensor whose values an entry is computed to have. It is nil if no tensor has them, or several have them. The tensor without is not looked at.
func (p *recomputing) matching(r *role, without *template, c *computed) (*candidate, error) {
	if some, err := c.some(r); !some || err != nil {
		return nil, err
	}
	r = p.meant(r)
	var all []candidate
	for _, t := range p.open {
		if t.settled || t == without || !r.openTo(t) || p.exchanged(t, r) {
			continue
		}
		for _, form := range t.Forms {
			f, err := p.bestOf(t, form, r, c.of)
			if err != nil {
				return nil, err
			}
			if f.good > 0 && 2*f.good >= f.of {
				f.named, f.later, f.alike = t.Called(r.text), p.fitsLater(t, form, r), names.Alikeness(t.Text, r.text)
				if f.named || f.later { // the cached keys of the first pass are those of this pass
					all = append(all, f)
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(b.good-a.good, btoi(b.named)-btoi(a.named), cmp.Compare(a.error, b.error), cmp.Compare(b.alike, a.alike), a.how.Distance()-b.how.Distance())
	})
	best := &all[0]
	for _, f := range all[1:] {
		if f.t == best.t || f.good != best.good || f.named != best.named || f.error > tensors.Clearly*best.error {
			continue
		}
		if copied, err := p.isCopy(f.t, best.t); !copied || err != nil { // of copies any is right
			return nil, err
		}
		if best.t.Holds(f.t.Template) { // the module returns what this part of it has returned
			best = &f
		}
	}
	return best, nil
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
