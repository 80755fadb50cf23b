package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// pair is two tensors being compared into a row.
type pair struct {
	row   *Row
	entry *order.Entry
	pass  int
	axes  string       // letters, empty when unknown
	cut   *measure.Cut // of the reference; nil for all of it
	early bool         // the order has it before the layers
	names sideNames
	l, r  measure.View

	arithmetic hooks.DType // the coarsest float type that took part in making either tensor, as far as the traces say
}

// compare measures a pair and decides.
func (w *walker) compare(p *pair) error {
	if !slices.Equal(p.l.Shape, p.r.Shape) {
		p.row.mismatch(gate.Shape, p.names.shapes(p.l.Shape, p.r.Shape))
		return nil
	}
	s, err := w.meter.Measure(p.l, p.r, p.entry.Compare, p.entry.Name == logits)
	if err != nil {
		return err
	}
	var f *measure.Floor
	if !s.Exact {
		if f, err = w.floorOf(p.entry, p.pass, p.r, p.cut, s.Scale); err != nil {
			return err
		}
	}
	p.row.Metrics = s.Metrics(f, p.r.Place)
	if err := w.nameAxes(p); err != nil {
		return err
	}
	p.arithmetic = s.Coarser
	for _, side := range w.sides {
		if d := side.m.DType; measure.Computes(d) && s.Coarser.Float() {
			p.arithmetic = floats.Coarser(p.arithmetic, d)
		}
	}
	p.row.Gate = w.gateOf(p, s.Exact)
	p.decide(s)
	p.note(s)
	if s.Top != nil && s.Top.Flipped > 0 && p.row.Gate.Tolerant() {
		w.noteTop(p, s)
	}
	w.checkDType(p)
	return w.final(p, s)
}

func (n sideNames) shapes(l, r []int) string {
	detail := n.pair(fmt.Sprint(l), fmt.Sprint(r))
	if measure.Elements(l) == measure.Elements(r) {
		detail += ", of as many elements: another layout?"
	}
	return detail
}

// nameAxes gives the axes their roles, and worst indexes their place in the whole tensor and in the sequence.
func (w *walker) nameAxes(p *pair) error {
	for i := range p.row.Metrics.Axes {
		a := &p.row.Metrics.Axes[i]
		a.Axis = measure.AxisName(p.axes, a.Number)
		if p.cut != nil && p.cut.Axis == a.Number {
			a.Worst = p.cut.Rows[a.Worst]
		}
		if p.axes == "" || rune(p.axes[a.Number]) != order.AxisToken {
			continue
		}
		positions, err := w.rowPositions(reference, p.pass, p.r.Rec.Shape[a.Number])
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

// decide gives the row its verdict.
func (p *pair) decide(s *measure.Sums) {
	m := p.row.Metrics
	masked := p.entry.Compare != order.All
	if masked {
		m.Pattern = &s.Pattern
		for _, at := range s.Pattern.At {
			m.Pattern.Examples = append(m.Pattern.Examples, p.r.Place(at))
		}
		if p.entry.Compare == order.Allowed {
			m.Pattern.Masked, m.Pattern.Shown = s.Masked, s.Compared
		}
	}
	switch {
	case m.NonFinite > 0:
		p.row.mismatch(gate.NonFinite, fmt.Sprintf("NaN or infinite on one side alone in %s, the first at %v", count(int(m.NonFinite), "element"), m.NonFiniteAt))
	case masked && m.Pattern.Gained+m.Pattern.Lost > 0:
		p.row.mismatch(gate.Value, fmt.Sprintf("%s sees %d keys more and %d fewer, the first at %v",
			p.names[local].Side, m.Pattern.Gained, m.Pattern.Lost, m.Pattern.Examples[0]))
	case s.Exact && m.Unequal > 0:
		p.row.mismatch(gate.Value, fmt.Sprintf("%d of %d elements differ", m.Unequal, m.Elements))
	case !p.row.Gate.Passed():
		p.row.mismatch(gate.Value, p.row.Gate.Worst())
	}
}

// note adds what is remarkable about a row beside its verdict.
func (p *pair) note(s *measure.Sums) {
	m := p.row.Metrics
	add := func(kind NoteKind, format string, args ...any) {
		p.row.Notes = append(p.row.Notes, Note{kind, fmt.Sprintf(format, args...)})
	}
	if m.NaNBoth > 0 {
		add(BothNaN, "%d of %d elements are NaN or overflowed%s", m.NaNBoth, m.Elements, p.names.both())
	}
	if why := p.vacuous(s); why != "" && p.row.Verdict == Match {
		add(Vacuous, "%s", why)
	}
	if s.TooLong {
		add(LongAxis, "an axis has more than %d indexes, which were not measured one by one", measure.MaxSlices)
	}
	if m.Floor > 2*m.Norm && !p.names.alone() { // less is what terms that point in different directions do
		add(Floored, "errors are relative to %.3g, %s, not to the %.3g of %s", float64(m.Floor), m.FloorFrom, float64(m.Norm), p.names[reference].Side)
	}
	if dl, dr := p.l.Rec.DType, p.r.Rec.DType; dl != dr && !s.Exact {
		add(MixedDType, "%s: compared as %s", p.names.pair(dl.String(), dr.String()), s.Coarser)
	}
}

// vacuous says why a match tests nothing, empty if it does. A single number is constant and yet a test.
func (p *pair) vacuous(s *measure.Sums) string {
	m := p.row.Metrics
	switch r := s.Side[reference]; {
	case m.Elements == 0:
		return "empty"
	case p.entry.Compare == order.Pattern:
		if s.Pattern.Masked == 0 {
			return "nothing is masked"
		}
	case s.Exact:
	case m.Compared == 0:
		return "no element is compared"
	case r.Min == 0 && r.Max == 0:
		return p.names[reference].Side + " is zero"
	case r.Min == r.Max && m.Compared > 1:
		return fmt.Sprintf("%s is %g everywhere", p.names[reference].Side, r.Min)
	}
	return ""
}

// noteTop tells a flip of the most likely token that noise explains from one that it does not.
func (w *walker) noteTop(p *pair, s *measure.Sums) {
	_, allowed, from := w.tokenNoise(p, float64(p.row.Metrics.Norm)/math.Sqrt(float64(max(s.Compared, 1))))
	kind, relation := Tie, "within"
	if !(measure.Number(s.Top.Gap) <= allowed) {
		kind, relation = Greedy, "beyond"
	}
	p.row.Notes = append(p.row.Notes, Note{kind, fmt.Sprintf("the most likely token differs in %d of %d rows; %s has the two %.3g apart at most, %s the %.3g that the %s allows",
		s.Top.Flipped, s.Top.Rows, w.names[reference].Side, s.Top.Gap, relation, float64(allowed), from)})
}

// checkDType makes a difference of dtypes a mismatch: any with Options.StrictDType, else where one trace leaves the dtype
// that the order gives the entry in a model like its own, and the other trace does not do the same.
func (w *walker) checkDType(p *pair) {
	dl, dr := p.l.Rec.DType, p.r.Rec.DType
	if p.row.Verdict == Mismatch || dl == dr && w.sides[local].m.DType == w.sides[reference].m.DType {
		return
	}
	if w.o.StrictDType && dl != dr {
		p.row.mismatch(gate.DType, p.names.pair(dl.String(), dr.String()))
		return
	}
	if p.entry.Op == nil || p.entry.Compare == order.Pattern {
		return // a list of names does not know dtypes, and a mask may be written in any
	}
	// A trace that declares one dtype and holds another would be held to the limits of the coarser.
	for i, d := range []hooks.DType{dl, dr} {
		want := expected(p.entry, w.sides[i].m.DType)
		if want == 0 || want == d || !want.Float() && !d.Float() {
			continue
		}
		p.row.mismatch(gate.DType, fmt.Sprintf("%s has %s where the order has %s (%s)", p.names[i].Trace, d, want, p.names.pair(dl.String(), dr.String())))
		return
	}
}
