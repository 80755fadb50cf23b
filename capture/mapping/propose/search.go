package propose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"

	"github.com/tracediff/tracediff/capture/mapping/propose/axes"

	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/order"
)

// fit is a form of a tensor of the dump as an entry.
type fit struct {
	t     *template
	f     *names.Form
	r     *role
	how   axes.Layout
	good  int     // layers with the values of the reference
	of    int     // layers that were compared, or have another shape
	error float64 // of the good ones: the largest distance
	named bool    // its name is a known one of the entry
	later bool    // the tensors of later passes are as large as the entry is there
	alike float64 // how alike its name is, see [alikeness]
	ends  bool    // its name ends as the entry's does: of entries with the same numbers it is the one that is meant
}

// byValues takes the tensors whose values some entry of the reference has.
func (p *proposer) byValues(ctx context.Context) error {
	if p.ref == nil {
		return nil
	}
	var all []fit
	of := map[*template][]fit{}
	for _, t := range p.open {
		p.looking(t.Text)
		for _, r := range p.free {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !r.openTo(t) || p.echoes(r) && !t.Called(r.text) {
				continue
			}
			for _, form := range t.Forms {
				f, err := p.best(t, form, r)
				if err != nil {
					return err
				}
				if f.good > 0 {
					f.named, f.later, f.ends = t.Called(r.text), p.fitsLater(t, form, r), names.LastPart(t.Text) == names.LastPart(r.text)
					all, of[t] = append(all, f), append(of[t], f)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fit) int {
		return cmp.Or(b.good-a.good, btoi(b.named)-btoi(a.named), btoi(b.later)-btoi(a.later), cmp.Compare(a.error, b.error), btoi(b.ends)-btoi(a.ends), a.r.level-b.r.level, a.r.at-b.r.at, a.how.Distance()-b.how.Distance())
	})
	for _, f := range all {
		if f.t.settled || f.r.taken {
			continue
		}
		if g := p.exchangedWith(f, all); g != nil {
			if err := p.keepNames(f, *g); err != nil {
				return err
			}
			continue
		}
		rivals, err := p.rivals(f, of[f.t])
		if err != nil {
			return err
		}
		if plainer, err := p.plainer(f, rivals); err != nil {
			return err
		} else if plainer { // that one comes, too
			continue
		}
		if len(rivals) == 0 {
			line := Line{Axes: f.how.Text, Why: f.why(), proven: f.good > 1}
			if line.Ring, err = p.ring(f); err != nil {
				return err
			}
			if line.Ring != "" {
				line.Axes, line.Why = f.how.Whole, line.Why+"; what later passes have stands in a ring"
			}
			if err := p.take(f.t, f.f, []*role{f.r}, line); err != nil {
				return err
			}
			if err := p.noteValues(f); err != nil {
				return err
			}
			continue
		}
		c := Choice{From: f.t.Text}
		for _, g := range append([]fit{f}, rivals...) {
			c.Lines = append(c.Lines, p.lines(g.t, g.f, []*role{g.r}, Line{Axes: g.how.Text, Why: g.why()})...)
		}
		p.choose(f.t, c)
	}
	return nil
}

// exchangedWith is the fit of the tensor that has the known name of f's entry, and has the values of the entry whose known name f's tensor has; nil for none.
func (p *proposer) exchangedWith(f fit, all []fit) *fit {
	if f.named {
		return nil
	}
	fits := func(t *template, o *fit) bool {
		return t.Called(o.r.text) && slices.ContainsFunc(p.plainWays(t, o.r), func(w way) bool { return w.how == o.how })
	}
	for i := range all {
		if g := &all[i]; g.t != f.t && !g.named && !g.t.settled && !g.r.taken && fits(f.t, g) && fits(g.t, &f) {
			return g
		}
	}
	return nil
}

// keepNames maps two tensors by their known names although each has the values of the other's entry. A port that exchanges them is wrong, and a map by values
// would hide the place.
func (p *proposer) keepNames(f, g fit) error {
	for _, two := range [][2]fit{{f, g}, {g, f}} {
		why := fmt.Sprintf("name; it has the values of %s, and %s has its values", two[0].r.text, two[1].t.Text)
		if err := p.take(two[0].t, two[0].f, []*role{two[1].r}, Line{Axes: two[1].how.Text, By: mapping.ByName, Why: why}); err != nil {
			return err
		}
	}
	return nil
}

// note notes the entries that tensors have without a line.
func (p *proposer) note(fitted *capture.Trace) error {
	sources := fitted.Sources()
	for i, r := range fitted.Records() {
		e, ok := p.list.Lookup(r.Name)
		if !ok || r.Pass > 0 || r.Firing > 0 || !p.known(r) {
			continue
		}
		if p.named[r.Name] = true; p.ref == nil || !r.DType.Float() {
			continue
		}
		d, ok, err := p.equal(tensors.OfSource(&sources[i]), e.Name)
		if err != nil {
			return err
		}
		if ok && d < tensors.Near {
			p.valued[r.Name] = d
		}
	}
	return nil
}

// noteValues notes the layers in which a tensor has the values of the reference.
func (p *proposer) noteValues(f fit) error {
	for layer, x := range f.f.Layers {
		e := f.r.layers[layer]
		if e == nil {
			continue
		}
		d, ok, err := p.compare(x, e, f.how, f.f.Last, p.ofReference)
		if err != nil {
			return err
		}
		if ok && d < tensors.Near {
			p.valued[e.Name] = d
		}
	}
	return nil
}

// rivals are the fits of f's tensor that are as good: another entry, unless it is the same tensor in the reference, or another form. Where
// f's tensor is an entry as it lies, one that has the same numbers in another order is no rival: v_proj of the first pass has those of values.
func (p *proposer) rivals(f fit, all []fit) ([]fit, error) {
	var list []fit
	for _, g := range all {
		if g.r == f.r && g.f == f.f || g.r.taken || g.good != f.good || g.error > tensors.Clearly*f.error || g.named != f.named || g.later != f.later {
			continue
		}
		if g.r == f.r {
			if f.f.Join != names.JoinAxis || g.f.Join != names.JoinAxis || f.how.Distance() == g.how.Distance() {
				list = append(list, g)
			}
			continue
		}
		same, err := p.alike(f, g)
		if err != nil {
			return nil, err
		}
		if !same && f.f == g.f && f.how.Same && !g.how.Same {
			same, err = p.sameOf(f, g, func(n *tensors.Numbers) []float64 { return n.Sorted })
			if err != nil {
				return nil, err
			}
		}
		if !same {
			list = append(list, g)
		}
	}
	return list, nil
}

func (f fit) why() string {
	text := fmt.Sprintf("values: %d of %d, relative L2 %.1e", f.good, f.of, f.error)
	if f.how.Interleaved {
		text += "; rotary pairs are neighbours"
	}
	return text + f.f.Why()
}

// values are those that a tensor has to have to be an entry; ok is false where they are not known.
type values func(e *order.Entry) (x tensors.Tensor, ok bool, err error)

// ofReference are the values that the reference has.
func (p *proposer) ofReference(e *order.Entry) (tensors.Tensor, bool, error) {
	r, ok := p.ref.Lookup(0, e.Name)
	if !ok {
		return tensors.Tensor{}, false, nil
	}
	return tensors.OfTrace(p.ref, r), true, nil
}

// best is the arrangement of a form with the values of an entry of the reference in most layers.
func (p *proposer) best(t *template, form *names.Form, r *role) (fit, error) {
	return p.bestOf(t, form, r, p.ofReference)
}

// bestOf is best for other values.
func (p *proposer) bestOf(t *template, form *names.Form, r *role, of values) (fit, error) {
	best := fit{t: t, f: form, r: r}
	for _, way := range p.fits(t, form, r) {
		how := way.Layout
		f := fit{t: t, f: form, r: r, how: how}
		for _, layer := range keysOf(form.Layers) {
			if !way.layers[layer] {
				f.of++
				continue
			}
			d, ok, err := p.compare(form.Layers[layer], r.layers[layer], how, form.Last, of)
			if err != nil {
				return best, err
			}
			f.of += btoi(ok)
			if ok && d < tensors.Near {
				f.good++
				f.error = max(f.error, d)
			}
		}
		if f.good > best.good || f.good == best.good && f.good > 0 && f.error < best.error {
			best = f
		}
	}
	return best, nil
}

// compare is the distance of a tensor, arranged, from the values of an entry, or from their last row. ok is false if the values are not known, or tell nothing.
func (p *proposer) compare(x tensors.Tensor, e *order.Entry, how axes.Layout, last bool, of values) (d float64, ok bool, err error) {
	other, ok, err := of(e)
	if !ok || err != nil {
		return 0, false, err
	}
	if last {
		if other, ok = other.LastRow(); !ok {
			return 0, false, nil
		}
	}
	return p.values.Nearness(x, other, how.Moves())
}

// plainer reports whether a rival needs no transform, where f does, to be an entry with the same numbers.
func (p *proposer) plainer(f fit, rivals []fit) (bool, error) {
	for _, g := range rivals {
		if f.how.Same || !g.how.Same || f.f != g.f || f.r == g.r {
			continue
		}
		if same, err := p.sameOf(f, g, func(n *tensors.Numbers) []float64 { return n.Sorted }); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// alike reports whether the entries of two fits are one tensor in the reference, so that it does not matter which is named.
func (p *proposer) alike(f, g fit) (bool, error) {
	return p.sameOf(f, g, func(n *tensors.Numbers) []float64 { return n.Plain })
}

// sameOf reports whether the entries of two fits have the same of their elements in the reference, in all layers.
func (p *proposer) sameOf(f, g fit, of func(*tensors.Numbers) []float64) (bool, error) {
	for layer := range f.f.Layers {
		a, ok := p.ref.Lookup(0, f.r.layers[layer].Name)
		b, also := p.ref.Lookup(0, g.r.layers[layer].Name)
		if !ok || !also {
			return false, nil
		}
		l, err := p.values.Expected.Numbers(tensors.OfTrace(p.ref, a))
		if err != nil {
			return false, err
		}
		r, err := p.values.Expected.Numbers(tensors.OfTrace(p.ref, b))
		if err != nil || l == nil || r == nil || tensors.Distance(of(l), of(r)) != 0 {
			return false, err
		}
	}
	return true, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
