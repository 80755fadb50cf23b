package propose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
)

// byValues takes the tensors whose values some entry of the reference has, the best candidates first.
func (p valueSearch) byValues(ctx context.Context) error {
	if p.ref == nil {
		return nil
	}
	all, of, err := p.candidates(ctx)
	if err != nil {
		return err
	}
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
			if err := p.takeValued(f); err != nil {
				return err
			}
			continue
		}
		c := Choice{From: f.t.Text}
		for _, g := range append([]candidate{f}, rivals...) {
			c.Lines = append(c.Lines, p.lines(g, Line{Why: g.why()})...)
		}
		p.choose(f.t, c)
	}
	return nil
}

// candidates are those with the values of the reference in some layer, the best first, and those of each tensor.
func (p valueSearch) candidates(ctx context.Context) (all []candidate, of map[*template][]candidate, err error) {
	of = map[*template][]candidate{}
	for _, t := range p.open {
		p.looking(t.Text)
		for _, r := range p.free {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			if !r.openTo(t) || p.echoes(r) && !t.Called(r.text) {
				continue
			}
			for _, form := range t.Forms {
				f, err := p.best(t, form, r)
				if err != nil {
					return nil, nil, err
				}
				if f.good > 0 {
					f.named, f.later, f.ends = t.Called(r.text), p.fitsLater(t, form, r), names.LastPart(t.Text) == names.LastPart(r.text)
					all, of[t] = append(all, f), append(of[t], f)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(b.good-a.good, btoi(b.named)-btoi(a.named), btoi(b.later)-btoi(a.later), cmp.Compare(a.error, b.error), btoi(b.ends)-btoi(a.ends), a.r.level-b.r.level, a.r.at-b.r.at, a.how.Distance()-b.how.Distance())
	})
	return all, of, nil
}

// takeValued takes a candidate without rivals.
func (p valueSearch) takeValued(f candidate) (err error) {
	line := Line{Why: f.why(), proven: f.good > 1}
	if line.Ring, err = p.ring(f); err != nil {
		return err
	}
	if line.Ring != "" {
		line.Axes, line.Why = f.how.Whole, line.Why+"; later passes have a ring"
	}
	if err := p.take(f, line); err != nil {
		return err
	}
	return p.noteValues(f)
}

// exchangedWith finds the candidate that is exchanged with f: its tensor has the known name of f's entry, and f's tensor the known name of
// its entry. It returns nil if no candidate is.
func (p valueSearch) exchangedWith(f candidate, all []candidate) *candidate {
	if f.named {
		return nil
	}
	fits := func(t *template, o *candidate) bool {
		return t.Called(o.r.text) && slices.ContainsFunc(p.plainCandidates(t, o.r), func(w candidate) bool { return w.how == o.how })
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
func (p valueSearch) keepNames(f, g candidate) error {
	for _, two := range [][2]candidate{{f, g}, {g, f}} {
		why := fmt.Sprintf("name; it has the values of %s, and %s has its values", two[0].r.text, two[1].t.Text)
		if err := p.take(candidate{t: two[0].t, f: two[0].f, r: two[1].r, how: two[1].how}, Line{By: mapping.ByName, Why: why}); err != nil {
			return err
		}
	}
	return nil
}

// note notes the entries that tensors have without a line.
func (p valueSearch) note(fitted *capture.Trace) error {
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
func (p valueSearch) noteValues(f candidate) error {
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

// rivals are equally good candidates. Aliases in the reference do not count, nor do permutations when f needs no transform: v_proj of the
// first pass has the numbers of the values in the cache.
func (p *evidence) rivals(f candidate, all []candidate) ([]candidate, error) {
	var list []candidate
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

// plainer reports whether a rival entry has the same numbers as f without the transform that f needs.
func (p *evidence) plainer(f candidate, rivals []candidate) (bool, error) {
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

// alike reports whether the entries of two candidates are the same tensor in the reference, so that either name is right.
func (p *evidence) alike(f, g candidate) (bool, error) {
	return p.sameOf(f, g, func(n *tensors.Numbers) []float64 { return n.Plain })
}
