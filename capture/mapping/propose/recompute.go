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

// eachFree calls look with the free entries in turn, to the end or to the first find.
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

// counts says in how many layers the values are the same, of those that can be computed.
func (f *fit) counts() string {
	text := fmt.Sprintf("%d of %d, relative L2 %.1e", f.good, f.of, f.error)
	if n := len(f.f.Layers) - f.of; n > 0 {
		text += fmt.Sprintf("; %d more could not be computed", n)
	}
	return text
}

func (p *proposer) takeComputed(f *fit, why string) error {
	return p.take(f.t, f.f, []*role{f.r}, Line{Axes: f.how.Text, Why: why, proven: f.good > 1})
}

// pair takes two tensors at once. If one operand of an entry has no tensor yet, pair looks for an open tensor from which another open tensor is recomputed: the first
// is the operand, and the second is the entry.
func (p *proposer) pair(ctx context.Context, r *role) (bool, error) {
	could := p.fitting(r)
	if len(could) == 0 {
		return false, nil
	}
	operand, err := p.lacking(r)
	if operand == nil || err != nil {
		return false, err
	}
	var all []couple
	began := p.work
	defer func() {
		if len(all) == 0 {
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
		for _, form := range t.Forms {
			for _, way := range p.fits(t, form, operand) {
				if err := ctx.Err(); err != nil {
					return false, err
				}
				key := fmt.Sprintf("%s\x00%p\x00%s\x00%s\x00%s", t.Text, form, way.Text, operand.text, r.text)
				if p.tried[key] { // what else it reads has not changed
					continue
				}
				c, err := p.suppose(&fit{t: t, f: form, r: operand, how: way.Layout}, r)
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

// exchanged reports whether a tensor has a known name of another free entry while a second open tensor has a known name of this entry. Then both keep their names: if the port
// confuses the two, the comparison reports it.
func (p *proposer) exchanged(t *template, r *role) bool {
	if t.Called(r.text) {
		return false
	}
	of := func(t *template, r *role) bool { return r.freeFor(t) && t.Called(r.text) && len(p.plainWays(t, r)) > 0 }
	return slices.ContainsFunc(p.free, func(o *role) bool { return o != r && of(t, o) }) &&
		slices.ContainsFunc(p.open, func(o *template) bool { return o != t && !o.settled && of(o, r) })
}

// couple is a tensor that is taken for an operand, and a tensor with the values that an entry has for this operand.
type couple struct {
	from, to *fit
	apart    float64 // distance of the operand from what it should be
}

// suppose takes a tensor for the operand of an entry, and looks for the tensor whose values the entry then has; nil if no tensor has them.
func (p *proposer) suppose(from *fit, r *role) (*couple, error) {
	given, err := p.computed.supposing(from.t, p.lines(from.t, from.f, []*role{from.r}, Line{Axes: from.how.Text}))
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
	apart, err := p.nearness(from.t, way{from.f, from.how}, from.r)
	return &couple{from, to, apart}, err
}

// surest is the couple with the most layers and the least error. Often several couples have these: a norm normalises head after head, so that any order of heads gives the same error.
// Then the operand that is nearest to its entry decides, if the next operand is twice as far away. Otherwise it is nil.
func (p *proposer) surest(all []couple) (*couple, error) {
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

// sameNumbers reports whether two forms have the same numbers, in any order, in all layers that both have.
func (p *proposer) sameNumbers(a, b *names.Form) (same bool, err error) {
	for layer, x := range a.Layers {
		y, has := b.Layers[layer]
		if !has {
			continue
		}
		if d, err := p.values.Sorted(x, y, p.values.Dump); d >= tensors.Near || err != nil {
			return false, err
		}
		same = true
	}
	return same, nil
}

// mostSupposed is how much may be computed for pairs that are none: some ten seconds on two cores.
const mostSupposed = 1 << 29

// nearest sorts the open tensors by their distance from one in the dump: people write a result next to its operands.
func (p *proposer) nearest(t *template) []*template {
	all, at := slices.Clone(p.open), t.All[0].At
	slices.SortStableFunc(all, func(a, b *template) int { return apart(a.All[0].At, at) - apart(b.All[0].At, at) })
	return all
}

func apart(a, b int) int { return max(a-b, b-a) }

// fitting are the open tensors that have the shape of an entry.
func (p *proposer) fitting(r *role) []*template {
	return slices.DeleteFunc(slices.Clone(p.open), func(t *template) bool {
		return t.settled || !r.freeFor(t) || r.alone && !p.turns().allow(t, r.at) || !slices.ContainsFunc(t.Forms, func(f *names.Form) bool { return len(p.fits(t, f, r)) > 0 })
	})
}

// lacking is the only free entry that an entry reads. If an entry reads several free entries, lacking is the only one of them that cannot be computed. Otherwise it is nil.
func (p *proposer) lacking(r *role) (*role, error) {
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
	slices.SortStableFunc(all, func(a, b fit) int {
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
