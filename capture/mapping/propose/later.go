package propose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/order"
)

// passOf is the pass of a tensor of a template.
func (t *template) passOf(x *spelled) int {
	if x.step >= 0 {
		return x.step - t.first
	}
	return x.r.Pass
}

// traces are what a proposal is made from.
type traces struct {
	trace, fitted *capture.Trace // the dump, and the dump with what needs no map already read
	ref           *capture.Trace // nil: there is none
	past          int            // the tokens before the first pass
}

// fromFirst numbers the passes of a dump that lacks the first from 0 on, those of the reference alike, and says how many tokens were before. A
// dump that has the first, and one without a reference, stays as it is.
func fromFirst(d traces) (traces, error) {
	first := -1
	for _, r := range d.trace.Records() {
		if first < 0 || r.Pass < first {
			first = r.Pass
		}
	}
	if d.ref == nil || first <= 0 {
		return d, nil
	}
	ids, err := d.ref.IDs()
	if err != nil || first >= len(ids) {
		return d, nil
	}
	for _, pass := range ids[:first] {
		d.past += len(pass)
	}
	for _, to := range []**capture.Trace{&d.trace, &d.fitted, &d.ref} {
		sources := slices.DeleteFunc((*to).Sources(), func(s capture.Source) bool { return s.Pass < first })
		for i := range sources {
			sources[i].Pass -= first
		}
		if *to, err = capture.Assemble((*to).Path(), sources, (*to).Manifest(), false, nil, nil); err != nil {
			return traces{}, err
		}
	}
	return d, nil
}

// fitsLater reports whether the tensors of the passes behind the first are as large as an entry is there: cached keys have the values of new
// ones in the first pass alone. Those of joined ranks are not looked at.
func (p *proposer) fitsLater(t *template, f *form, r *role) bool {
	if f.join != "" {
		return true
	}
	for _, x := range t.all {
		pass := t.passOf(x)
		e := r.layers[x.best.layer+f.stages[x.mark.rank]]
		if pass == 0 || pass >= len(p.passes) || e == nil || len(e.Shape) == 0 {
			continue
		}
		want := e.Size(p.passes[pass], p.list.Config.SlidingWindow)
		if f.last && len(want) > 1 {
			want[1] = 1
		}
		if elementsOf(want) != elementsOf(x.r.Shape) {
			return false
		}
	}
	return true
}

// passesOf are the passes of a trace, as far as it has their token ids.
func passesOf(t *capture.Trace) []order.Pass {
	var tokens []int
	for pass := 0; ; pass++ {
		r, ok := t.Lookup(pass, order.InputIDs)
		if !ok || len(r.Shape) != 2 {
			return order.Passes(tokens)
		}
		tokens = append(tokens, r.Shape[1])
	}
}

// ring is the axis of keys of a fit whose later passes have the values of the reference only if they stand in a ring of slots; "" where
// they do not, or nothing tells.
func (p *proposer) ring(f fit) (string, error) {
	if f.f.join != "" || f.f.stages != nil || f.f.last {
		return "", nil
	}
	plain, turned := 0, 0
	for _, x := range f.t.all {
		e := f.r.layers[x.best.layer]
		if e == nil || x.r.Firing != f.t.sources[0].Firing {
			continue
		}
		pass := f.t.passOf(x)
		axis := strings.IndexByte(strings.ReplaceAll(e.Axes, " ", ""), order.AxisKey)
		if axis < 0 || pass == 0 && p.past == 0 {
			continue
		}
		in, out, err := p.inRing(f, x, e, pass, axis)
		if err != nil {
			return "", err
		}
		if in != out { // the same token in all slots has the same value in each order
			plain, turned = plain+btoi(in), turned+btoi(out)
		}
	}
	if turned == 0 || plain > 0 || !strings.Contains(" "+f.how.whole, " "+string(order.AxisKey)+" ") {
		return "", nil
	}
	return string(order.AxisKey), nil
}

// inRing compares the keys of a later pass, whose oldest do not stand first in a ring, with the reference's: as they lie, and unrolled.
func (p *proposer) inRing(f fit, x *spelled, e *order.Entry, pass, axis int) (plain, turned bool, err error) {
	other, ok := p.ref.Lookup(pass, e.Name)
	if !ok || pass >= len(p.passes) {
		return false, false, nil
	}
	total := p.passes[pass].Past + p.passes[pass].Tokens
	if axis >= len(other.Shape) || other.Shape[axis] < 2 || total <= other.Shape[axis] || total%other.Shape[axis] == 0 {
		return false, false, nil
	}
	here, err := newReader().of(plainTensor(&x.source))
	if here == nil || err != nil {
		return false, false, err
	}
	far, err := p.far.of(recorded(p.ref, other))
	if far == nil || err != nil {
		return false, false, err
	}
	l, err := layout.New(f.how.whole, "")
	if err != nil {
		return false, false, err
	}
	values := arrange(here.plain, x.r.Shape, l)
	return distance(values, far.plain) < near, distance(unroll(values, other.Shape, axis, total%other.Shape[axis]), far.plain) < near, nil
}

// unroll turns a tensor along an axis, so that the element that stands at first is the first.
func unroll(values []float64, shape []int, axis, first int) []float64 {
	if len(values) != elementsOf(shape) {
		return nil
	}
	inner := elementsOf(shape[axis+1:])
	out := make([]float64, 0, len(values))
	for from := 0; from < len(values); from += shape[axis] * inner {
		for k := range shape[axis] {
			at := from + (first+k)%shape[axis]*inner
			out = append(out, values[at:at+inner]...)
		}
	}
	return out
}
