package propose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/propose/axes"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
)

// evidence compares tensors of the dump with the reference and with each other.
type evidence struct {
	*model
	trace    *capture.Trace
	ref      *capture.Trace // nil without a reference
	values   tensors.Comparison
	digests  tensors.Digests
	inPasses bool              // the elements of a dump that is a list are passes
	looking  func(name string) // is told the name of the tensor, or of the entry, that is looked at
}

// values are those that a tensor has to have to be an entry; ok is false where they are not known.
type values func(e *order.Entry) (x tensors.Tensor, ok bool, err error)

// ofReference are the values that the reference has.
func (p *evidence) ofReference(e *order.Entry) (tensors.Tensor, bool, error) {
	r, ok := p.ref.Lookup(0, e.Name)
	if !ok {
		return tensors.Tensor{}, false, nil
	}
	return tensors.OfTrace(p.ref, r), true, nil
}

// best is the arrangement of a form with the values of an entry of the reference in most layers.
func (p *evidence) best(t *template, form *names.Form, r *role) (candidate, error) {
	return p.bestOf(t, form, r, p.ofReference)
}

// bestOf is best for other values.
func (p *evidence) bestOf(t *template, form *names.Form, r *role, of values) (candidate, error) {
	best := candidate{t: t, f: form, r: r}
	for _, f := range p.fits(t, form, r) {
		for _, layer := range keysOf(form.Layers) {
			if !f.layers[layer] {
				f.of++
				continue
			}
			d, ok, err := p.compare(form.Layers[layer], r.layers[layer], f.how, form.Last, of)
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
func (p *evidence) compare(x tensors.Tensor, e *order.Entry, how axes.Layout, last bool, of values) (d float64, ok bool, err error) {
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

// equal is the distance of a tensor from one of the reference as they lie; ok is false where the two cannot be compared.
func (p *evidence) equal(x tensors.Tensor, name string) (d float64, ok bool, err error) {
	r, has := p.ref.Lookup(0, name)
	if !has || !r.DType.Float() {
		return 0, false, nil
	}
	return p.values.AsTheyLie(x, tensors.OfTrace(p.ref, r))
}

// sameOf reports whether the entries of two fits have the same of their elements in the reference, in all layers.
func (p *evidence) sameOf(f, g candidate, of func(*tensors.Numbers) []float64) (bool, error) {
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

func (p *evidence) farIntegers(name string) ([]int64, error) {
	if p.ref == nil {
		return nil, nil
	}
	r, ok := p.ref.Lookup(0, name)
	if !ok {
		return nil, nil
	}
	return tensors.OfTrace(p.ref, r).Integers()
}

// sameNumbers reports whether two forms have the same numbers, in any order, in all layers that both have.
func (p *evidence) sameNumbers(a, b *names.Form) (same bool, err error) {
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

// isCopy reports whether the tensors of two patterns are the same, layer by layer and pass by pass. Tensors whose elements are all alike prove nothing.
func (p *evidence) isCopy(a, b *template) (bool, error) {
	if a == b || len(a.All) != len(b.All) {
		return false, nil
	}
	varied := false
	for _, x := range a.All {
		i := slices.IndexFunc(b.All, func(y *names.Occurrence) bool {
			return x.Best.Layer == y.Best.Layer && x.Rank.Number == y.Rank.Number && a.PassOf(x) == b.PassOf(y)
		})
		if i < 0 {
			return false, nil
		}
		if same, err := p.digests.Same(x.Tensor(), b.All[i].Tensor()); !same || err != nil {
			return false, err
		}
		_, differ, err := p.digests.Start(x.Tensor())
		if err != nil {
			return false, err
		}
		varied = varied || differ
	}
	return varied, nil
}

// among is the pattern of the tensor that has the bytes of x; "" for none.
func (p *evidence) among(x *names.Occurrence, all []begun) (string, error) {
	for _, b := range all {
		if same, err := p.digests.Same(x.Tensor(), b.x.Tensor()); err != nil {
			return "", err
		} else if same {
			return b.of, nil
		}
	}
	return "", nil
}

// unitRows reports whether all rows of the tensors of a pattern have a root mean square of 1: a norm computes such rows and then multiplies them by its weight.
// Some engines dump both. The first of the two is no entry.
func (p *evidence) unitRows(t *template) (bool, error) {
	if t.unit != nil {
		return *t.unit, nil
	}
	unit := len(t.Sources) > 0
	for i := range t.Sources {
		x := tensors.OfSource(&t.Sources[i])
		n, err := p.values.Dump.Numbers(x)
		if err != nil {
			return false, err
		}
		unit = unit && n != nil && len(x.Shape) > 0 && tensors.UnitRows(n.Plain, x.Shape[len(x.Shape)-1])
	}
	t.unit = &unit
	return unit, nil
}

// isNorm reports whether the entries of a role are norms, which a factor in their operand does not change.
func isNorm(r *role) bool {
	for _, e := range r.layers {
		if e.Op == nil || !strings.Contains(e.Op.Kind(), "norm") {
			return false
		}
	}
	return len(r.layers) > 0
}
