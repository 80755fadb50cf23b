package compare

import (
	"cmp"
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// measurer measures pairs, and holds them to what they are judged by.
type measurer struct {
	*pairing
	meter   *measure.Meter
	judging *Judging
	noise   *gate.Floors // nil without a noise floor
	stored  hooks.DType  // in which the local dump is stored; 0 for that of its tensors
	next    *nextTokens  // what logits say of the next token
}

// remarks adds the remarks to a measured pair. Logits are looked at as a choice of tokens, too. s is nil for a pair that could not be measured.
func (m *measurer) remarks(ctx context.Context, p *pair, s *measure.Sums) error {
	if s == nil {
		return nil
	}
	p.note(s)
	if p.printed() != nil {
		return nil // elements that were not printed hold the reference's values, and the most likely token may be one of these
	}
	if s.Top != nil && s.Top.Flipped > 0 && p.row.Gate.Tolerant() {
		m.next.note(p, s)
	}
	return m.next.look(ctx, p, s)
}

// measure measures a pair and sees what it shows.
func (m *measurer) measure(ctx context.Context, p *pair) (*measure.Sums, error) {
	s, err := m.meter.Measure(ctx, p.l, p.r, p.entry.Compare, p.entry.Name == logits)
	if err != nil {
		return nil, err
	}
	var f *measure.Floor
	if !s.Exact {
		if f, err = m.floorOf(ctx, p, s.Scale); err != nil {
			return nil, err
		}
	}
	p.row.Metrics = s.Metrics(f, p.r.Place)
	if err := m.nameAxes(p); err != nil {
		return nil, err
	}
	if p.printed() != nil {
		p.row.Metrics.Axes = nil // the nearest tensor bounds the error of the whole from below, not that of each of its parts
	}
	p.arithmetic = s.Coarser
	for _, side := range m.plan.Sides {
		if d := side.Manifest.DType; measure.Computes(d) && s.Coarser.Float() {
			p.arithmetic = floats.Coarser(p.arithmetic, d)
		}
	}
	p.row.Gate = m.gateOf(p, s.Exact)
	if p.row.Overflow, err = p.overflowOf(cmp.Or(m.stored, p.l.Rec.DType)); err != nil {
		return nil, err
	}
	if err := m.lookOutside(p); err != nil {
		return nil, err
	}
	p.look(s)
	wider, err := m.lookAtDType(p)
	if err != nil {
		return nil, err
	}
	if !p.row.Gate.Passed() {
		p.see(SeenPast, "%s", p.row.Gate.Worst())
	}
	if wider {
		p.see(SeenWider, "%s has %s where the order has %s (%s)", p.names[local].Trace, p.l.Rec.DType, m.ordered(p, local),
			p.names.Pair(p.l.Rec.DType.String(), p.r.Rec.DType.String()))
	}
	return s, nil
}

// nameAxes gives the axes their roles, and worst indexes their place in the whole tensor and in the sequence.
func (m *measurer) nameAxes(p *pair) error {
	p.row.Metrics.OneRow = p.oneRow()
	for i := range p.row.Metrics.Axes {
		a := &p.row.Metrics.Axes[i]
		a.Axis = measure.AxisName(p.axes, a.Number)
		if p.cut != nil && p.cut.Axis == a.Number {
			a.Worst = p.cut.Rows[a.Worst]
		}
		if p.axes == "" || rune(p.axes[a.Number]) != order.AxisToken {
			continue
		}
		positions, err := m.plan.RowPositions(reference, p.row.Pass, p.r.Rec, p.r.Rec.Shape[a.Number])
		if err != nil {
			return err
		}
		if positions != nil {
			at := int(positions[a.Worst])
			a.Position = &at
		}
	}
	return nil
}

// floorOf returns the floor of an entry's denominator. The floor is computed from the operands in the reference
// trace with the entry's shape: both terms of a sum, the streams receiving an addition, the input of an activation.
// It is nil for operations without cancellation, and for masked scores, where the mask would dominate the floor.
// The norms of the operands are multiplied by scale, like the norm of the entry.
func (m *measurer) floorOf(ctx context.Context, p *pair, scale float64) (*measure.Floor, error) {
	e := p.entry
	o, cancels := e.Op.(op.Cancelling)
	if !cancels || e.Compare != order.All {
		return nil, nil
	}
	f := &measure.Floor{}
	if f.Fraction, f.From = o.OperandScale(); f.Fraction == 0 {
		return nil, nil
	}
	for _, ref := range e.Inputs {
		trace := m.plan.Sides[reference].Trace
		rec, ok := trace.Lookup(p.row.Pass, ref.Name)
		if !ok || !rec.DType.Float() || !slices.Equal(rec.Shape, p.r.Rec.Shape) {
			continue
		}
		operand, err := m.meter.Alone(ctx, measure.Whole(trace, rec).Cut(p.cut), scale)
		if err != nil {
			return nil, err
		}
		f.Add(operand)
	}
	if f.Square == 0 {
		return nil, nil
	}
	return f, nil
}

// gateOf decides on a pair: by a person's tolerance, else by the noise floor, else by the table.
func (m *measurer) gateOf(p *pair, exact bool) *gate.Gate {
	switch {
	case p.entry.Compare == order.Pattern:
		return &gate.Gate{From: "pattern", Tolerance: measure.Nan}
	case exact:
		return &gate.Gate{From: gate.ByEquality, Tolerance: measure.Nan}
	}
	metrics := p.row.Metrics
	if t, from := m.judging.Limits.Tolerance(p.entry.Name, p.row.Pass); t != nil {
		return t.Gate(metrics, from)
	}
	if g := m.noise.Gate(metrics, p.row.Key(), p.entry.Name, p.arithmetic, p.cut != nil); g != nil {
		return g
	}
	return gate.ByTable(metrics, p.arithmetic, p.early)
}

// lookAtDType compares dtypes. With Options.StrictDType, every difference counts. Otherwise, on either side, a
// dtype with less range or more digits than the order's dtype (in a model of the trace's own dtype) counts. More
// digits on the local side, such as float32 where transformers rounds, count only if nothing else differs (wider).
// Narrow values in a wider dtype do not count.
func (m *measurer) lookAtDType(p *pair) (wider bool, err error) {
	dl, dr := p.l.Rec.DType, p.r.Rec.DType
	if m.judging.StrictDType && dl != dr {
		p.see(SeenDType, "%s", p.names.Pair(dl.String(), dr.String()))
	}
	for i, v := range []measure.View{p.l, p.r}[:len(m.plan.Each())] {
		d, want := v.Rec.DType, m.ordered(p, i)
		if i == local && d == m.stored { // which says nothing of what was computed
			continue
		}
		if want == 0 || want == d || !want.Float() && !d.Float() {
			continue
		}
		if digits(d, want) {
			if m.plan.Mode == sides.AB && dl == dr { // neither is transformers
				continue
			}
			holds, err := measure.Holds(m.plan.Sides[i].Trace, v.Rec, want)
			if err != nil {
				return wider, err
			}
			if wider = wider || !holds && i == local; holds || i == local {
				continue
			}
		}
		p.see(SeenDType, "%s has %s where the order has %s (%s)", p.names[i].Trace, d, want, p.names.Pair(dl.String(), dr.String()))
	}
	return wider, nil
}

// digits reports whether a float type has more of them than another.
func digits(d, than hooks.DType) bool {
	return d.Float() && than.Float() && floats.Precision(d) > floats.Precision(than)
}

// ordered is the dtype that the order gives an entry in one side's trace; 0 where it is not known. A list of names does not
// know dtypes, and a mask may be written in any.
func (m *measurer) ordered(p *pair, side int) hooks.DType {
	if p.entry.Op == nil || p.entry.Compare == order.Pattern {
		return 0
	}
	return orderedDType(m.plan.InPass(p.entry, p.l.Rec.Pass), m.plan.Sides[side].Manifest.DType)
}

// orderedDType is the dtype that the order gives an entry in a trace of a model of some dtype; 0 when it is not known.
func orderedDType(e *order.Entry, model hooks.DType) hooks.DType {
	if e.DType == "" {
		return model
	}
	d, err := hooks.ParseDType(e.DType)
	if err != nil {
		return 0
	}
	return d
}
