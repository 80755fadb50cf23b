package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// pair is two tensors being compared into a row.
type pair struct {
	row   *Row
	entry *order.Entry
	pass  int
	axes  string // letters, empty when unknown
	cut   *cut   // of the reference; nil for all of it
	early bool   // the order has it before the layers
	names sideNames
	l, r  view

	arithmetic hooks.DType // the coarsest float type that took part in making either tensor, as far as the traces say
}

// compare measures a pair and decides.
func (w *walker) compare(p *pair) error {
	if !slices.Equal(p.l.shape, p.r.shape) {
		p.row.mismatch(Shape, p.names.shapes(p.l.shape, p.r.shape))
		return nil
	}
	s, err := w.meter.measure(p.l, p.r, p.entry.Compare, p.entry.Name == logits)
	if err != nil {
		return err
	}
	var f *floor
	if !s.exact {
		if f, err = w.floorOf(p.entry, p.pass, p.r, p.cut, s.scale); err != nil {
			return err
		}
	}
	p.row.Metrics = s.metrics(f, p.place)
	if err := w.nameAxes(p); err != nil {
		return err
	}
	p.arithmetic = s.coarser
	for _, side := range w.sides {
		if d := side.m.DType; computes(d) && s.coarser.Float() {
			p.arithmetic = floats.Coarser(p.arithmetic, d)
		}
	}
	p.row.Gate = w.gateOf(p, s.exact)
	p.decide(s)
	p.note(s)
	if s.top != nil && s.top.flipped > 0 && p.row.Gate.tolerant() {
		w.noteTop(p, s)
	}
	w.checkDType(p)
	return w.final(p, s)
}

func (n sideNames) shapes(l, r []int) string {
	detail := n.pair(fmt.Sprint(l), fmt.Sprint(r))
	if elements(l) == elements(r) {
		detail += ", of as many elements: another layout?"
	}
	return detail
}

// place translates an element of the views to the reference tensor's indexes.
func (p *pair) place(at int64) []int {
	index := make([]int, len(p.r.shape))
	for i := len(index) - 1; i >= 0; i-- {
		index[i] = int(at % int64(p.r.shape[i]))
		at /= int64(p.r.shape[i])
	}
	if p.cut != nil {
		index[p.cut.axis] = p.cut.rows[index[p.cut.axis]]
	}
	return index
}

// nameAxes gives the axes their roles, and worst indexes their place in the whole tensor and in the sequence.
func (w *walker) nameAxes(p *pair) error {
	for i := range p.row.Metrics.Axes {
		a := &p.row.Metrics.Axes[i]
		a.Axis = AxisName(p.axes, a.Number)
		if p.cut != nil && p.cut.axis == a.Number {
			a.Worst = p.cut.rows[a.Worst]
		}
		if p.axes == "" || rune(p.axes[a.Number]) != order.AxisToken {
			continue
		}
		positions, err := w.rowPositions(reference, p.pass, p.r.rec.Shape[a.Number])
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
func (p *pair) decide(s *sums) {
	m := p.row.Metrics
	masked := p.entry.Compare != order.All
	if masked {
		m.Pattern = &s.pattern
		for _, at := range s.pattern.at {
			m.Pattern.Examples = append(m.Pattern.Examples, p.place(at))
		}
		if p.entry.Compare == order.Allowed {
			m.Pattern.Masked, m.Pattern.Shown = s.masked, s.compared
		}
	}
	switch {
	case m.NonFinite > 0:
		p.row.mismatch(NonFinite, fmt.Sprintf("NaN or infinite on one side alone in %s, the first at %v", count(int(m.NonFinite), "element"), m.NonFiniteAt))
	case masked && m.Pattern.Gained+m.Pattern.Lost > 0:
		p.row.mismatch(Value, fmt.Sprintf("%s sees %d keys more and %d fewer, the first at %v",
			p.names[local].Side, m.Pattern.Gained, m.Pattern.Lost, m.Pattern.Examples[0]))
	case s.exact && m.Unequal > 0:
		p.row.mismatch(Value, fmt.Sprintf("%d of %d elements differ", m.Unequal, m.Elements))
	case !p.row.Gate.Passed():
		p.row.mismatch(Value, p.row.Gate.worst())
	}
}

// worst says which check failed by most.
func (g *Gate) worst() string {
	var worst Check
	for _, c := range g.Checks {
		if !c.Passed() && (worst.What == "" || !(c.Error/c.Limit <= worst.Error/worst.Limit)) {
			worst = c
		}
	}
	return fmt.Sprintf("%s is %.3g, the limit %.3g", worst.Name(), float64(worst.Error), float64(worst.Limit))
}

// note adds what is remarkable about a row beside its verdict.
func (p *pair) note(s *sums) {
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
	if s.tooLong {
		add(LongAxis, "an axis has more than %d indexes, which were not measured one by one", maxSlices)
	}
	if m.Floor > 2*m.Norm && !p.names.alone() { // less is what terms that point in different directions do
		add(Floored, "errors are relative to %.3g, %s, not to the %.3g of %s", float64(m.Floor), m.FloorFrom, float64(m.Norm), p.names[reference].Side)
	}
	if dl, dr := p.l.rec.DType, p.r.rec.DType; dl != dr && !s.exact {
		add(MixedDType, "%s: compared as %s", p.names.pair(dl.String(), dr.String()), s.coarser)
	}
}

// vacuous says why a match tests nothing, empty if it does. A single number is constant and yet a test.
func (p *pair) vacuous(s *sums) string {
	m := p.row.Metrics
	switch r := s.side[reference]; {
	case m.Elements == 0:
		return "empty"
	case p.entry.Compare == order.Pattern:
		if s.pattern.Masked == 0 {
			return "nothing is masked"
		}
	case s.exact:
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
func (w *walker) noteTop(p *pair, s *sums) {
	_, allowed, from := w.tokenNoise(p, float64(p.row.Metrics.Norm)/math.Sqrt(float64(max(s.compared, 1))))
	kind, relation := Tie, "within"
	if !(Number(s.top.gap) <= allowed) {
		kind, relation = Greedy, "beyond"
	}
	p.row.Notes = append(p.row.Notes, Note{kind, fmt.Sprintf("the most likely token differs in %d of %d rows; %s has the two %.3g apart at most, %s the %.3g that the %s allows",
		s.top.flipped, s.top.rows, w.names[reference].Side, s.top.gap, relation, float64(allowed), from)})
}

// checkDType makes a difference of dtypes a mismatch: any with Options.StrictDType, else where one trace leaves the dtype
// that the order gives the entry in a model like its own, and the other trace does not do the same.
func (w *walker) checkDType(p *pair) {
	dl, dr := p.l.rec.DType, p.r.rec.DType
	if p.row.Verdict == Mismatch || dl == dr && w.sides[local].m.DType == w.sides[reference].m.DType {
		return
	}
	if w.o.StrictDType && dl != dr {
		p.row.mismatch(DType, p.names.pair(dl.String(), dr.String()))
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
		p.row.mismatch(DType, fmt.Sprintf("%s has %s where the order has %s (%s)", p.names[i].Trace, d, want, p.names.pair(dl.String(), dr.String())))
		return
	}
}
