package propose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
)

// traces are what a proposal is made from.
type traces struct {
	trace, fitted *capture.Trace // the dump, and the dump with what needs no map already read
	ref           *capture.Trace // nil: no reference
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

// ring is the axis of keys of a fit whose later passes have the values of the reference only if they stand in a ring of slots; "" where
// they do not, or nothing tells.
func (p *evidence) ring(f candidate) (string, error) {
	if f.f.Join != "" || f.f.Stages != nil || f.f.Last {
		return "", nil
	}
	plain, turned := 0, 0
	for _, x := range f.t.All {
		e := f.r.layers[x.Best.Layer]
		if e == nil || x.Record.Firing != f.t.Sources[0].Firing {
			continue
		}
		pass := f.t.PassOf(x)
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
	if turned == 0 || plain > 0 || !strings.Contains(" "+f.how.Whole, " "+string(order.AxisKey)+" ") {
		return "", nil
	}
	return string(order.AxisKey), nil
}

// inRing compares the keys of a later pass, whose oldest do not stand first in a ring, with the reference's: as they lie, and unrolled.
func (p *evidence) inRing(f candidate, x *names.Occurrence, e *order.Entry, pass, axis int) (plain, turned bool, err error) {
	other, ok := p.ref.Lookup(pass, e.Name)
	if !ok || pass >= len(p.passes) {
		return false, false, nil
	}
	total := p.passes[pass].Past + p.passes[pass].Tokens
	if axis >= len(other.Shape) || other.Shape[axis] < 2 || total <= other.Shape[axis] || total%other.Shape[axis] == 0 {
		return false, false, nil
	}
	here, err := tensors.NewReader().Numbers(tensors.OfSource(&x.Source))
	if here == nil || err != nil {
		return false, false, err
	}
	far, err := p.values.Expected.Numbers(tensors.OfTrace(p.ref, other))
	if far == nil || err != nil {
		return false, false, err
	}
	values := tensors.Arranged(here.Plain, x.Record.Shape, f.how.Whole)
	return tensors.Distance(values, far.Plain) < tensors.Near, tensors.Distance(tensors.Unrolled(values, other.Shape, axis, total%other.Shape[axis]), far.Plain) < tensors.Near, nil
}
