package compare

import (
	"cmp"
	"fmt"
	"math"
	"strings"

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

	seen   Seen   // the first thing that was seen
	detail string // in words

	standing Standing
	wrong    string // what isolation accuses, in words
	gap      string // where the chain breaks, or why nothing is known of it; of what is past its limit
	from     string // key of the known divergence at which the chain begins; of what is past its limit

	wider bool // the local tensor has more digits than the order gives it

	content  Content
	untested string // why it shows nothing

	arithmetic hooks.DType // the coarsest float type that took part in making either tensor, as far as the traces say
}

// see notes what a pair shows, unless something was seen before.
func (p *pair) see(what Seen, format string, args ...any) {
	if p.seen == SeenWithin {
		p.seen, p.detail = what, fmt.Sprintf(format, args...)
	}
}

// compare measures a pair, and looks at logits as a choice of tokens.
func (w *walker) compare(p *pair) error {
	s, err := w.beside(p)
	if err != nil {
		return err
	}
	p.note(s)
	if p.printed() != nil {
		return nil // what is not printed is the other side's, the most likely token too
	}
	if s.Top != nil && s.Top.Flipped > 0 && p.row.Gate.Tolerant() {
		w.noteTop(p, s)
	}
	return w.final(p, s)
}

// beside measures a pair and sees what it shows.
func (w *walker) beside(p *pair) (*measure.Sums, error) {
	s, err := w.meter.Measure(p.l, p.r, p.entry.Compare, p.entry.Name == logits)
	if err != nil {
		return nil, err
	}
	var f *measure.Floor
	if !s.Exact {
		if f, err = w.floorOf(p.entry, p.pass, p.r, p.cut, s.Scale); err != nil {
			return nil, err
		}
	}
	p.row.Metrics = s.Metrics(f, p.r.Place)
	if err := w.nameAxes(p); err != nil {
		return nil, err
	}
	if p.printed() != nil {
		p.row.Metrics.Axes = nil // the nearest tensor bounds the error of the whole from below, not that of each of its parts
	}
	p.arithmetic = s.Coarser
	for _, side := range w.sides {
		if d := side.m.DType; measure.Computes(d) && s.Coarser.Float() {
			p.arithmetic = floats.Coarser(p.arithmetic, d)
		}
	}
	p.row.Gate = w.gateOf(p, s.Exact)
	if p.row.Overflow, err = p.overflowOf(cmp.Or(w.o.Stored, p.l.Rec.DType)); err != nil {
		return nil, err
	}
	if err := w.lookOutside(p); err != nil {
		return nil, err
	}
	p.look(s)
	if err := w.lookAtDType(p); err != nil {
		return nil, err
	}
	if !p.row.Gate.Passed() {
		p.see(SeenPast, "%s", p.row.Gate.Worst())
	}
	if p.wider {
		p.see(SeenWider, "%s has %s where the order has %s (%s)", p.names[local].Trace, p.l.Rec.DType, w.ordered(p, local),
			p.names.pair(p.l.Rec.DType.String(), p.r.Rec.DType.String()))
	}
	return s, nil
}

// nameAxes gives the axes their roles, and worst indexes their place in the whole tensor and in the sequence.
func (w *walker) nameAxes(p *pair) error {
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
		positions, err := w.rowPositions(reference, p.pass, p.r.Rec, p.r.Rec.Shape[a.Number])
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

// oneRow reports whether the compared tensors have the row of one token: their axis of tokens has one index.
func (p *pair) oneRow() bool {
	at := strings.IndexRune(p.axes, order.AxisToken)
	return at >= 0 && at < len(p.l.Shape) && p.l.Shape[at] == 1
}

// place says what the indexes of an element of the reference's tensor count, of the axes with more than one index: "token 4, key 0". Where
// the role of one is not known it is the indexes alone.
func (p *pair) place(at []int) string {
	var of []string
	for k, n := range p.r.Rec.Shape {
		if n < 2 {
			continue
		}
		name := measure.AxisName(p.axes, k)
		if k >= len(at) || strings.HasPrefix(name, "axis ") {
			return fmt.Sprint(at)
		}
		of = append(of, fmt.Sprintf("%s %d", name, at[k]))
	}
	return cmp.Or(strings.Join(of, ", "), fmt.Sprint(at))
}

// look sees what has no tolerance.
func (p *pair) look(s *measure.Sums) {
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
	if o := p.row.Overflow; o != nil {
		p.see(SeenNonFinite, "%s overflowed in %s, the first at %s: %s has up to %.3g there, and %s ends at %g", o.DType, count(int(o.Elements), "element"),
			p.place(m.NonFiniteAt), p.names[reference].Side, float64(o.Largest), o.DType, float64(o.End))
	}
	if m.NonFinite > 0 {
		p.see(SeenNonFinite, "NaN or infinite on one side alone in %s, the first at %s", count(int(m.NonFinite), "element"), p.place(m.NonFiniteAt))
	}
	if masked && m.Pattern.Gained+m.Pattern.Lost > 0 {
		p.see(SeenKeys, "%s %s, first at %s", p.names[local].Side, attends(m.Pattern), p.place(m.Pattern.Examples[0]))
	}
	if s.Exact && m.Unequal > 0 {
		p.see(SeenNumbers, "%d of %d elements differ", m.Unequal, m.Elements)
	}
}

// attends says which keys one side attends to and the other does not.
func attends(m *measure.Pattern) string {
	more := fmt.Sprintf("attends to %d extra %s", m.Gained, plural(m.Gained, "key"))
	less := fmt.Sprintf("misses %d %s", m.Lost, plural(m.Lost, "key"))
	switch {
	case m.Lost == 0:
		return more
	case m.Gained == 0:
		return less
	}
	return more + " and " + less
}

func plural(n int64, thing string) string {
	if n == 1 {
		return thing
	}
	return thing + "s"
}

// note adds what is remarkable about a row beside its verdict, and finds out whether there is anything to be tested.
func (p *pair) note(s *measure.Sums) {
	m := p.row.Metrics
	if p.content, p.untested = p.contentOf(s); p.content == NotFinite {
		p.remark(BothNaN, "%s", p.untested)
	}
	if s.TooLong {
		p.remark(LongAxis, "an axis has more than %d indexes, which were not measured one by one", measure.MaxSlices)
	}
	if m.Floor > 2*m.Norm && !p.names.alone() { // less is what terms that point in different directions do
		p.remark(Floored, "errors are relative to %.3g, %s, not to the %.3g of %s", float64(m.Floor), m.FloorFrom, float64(m.Norm), p.names[reference].Side)
	}
	p.notePrinted()
	if dl, dr := p.l.Rec.DType, p.r.Rec.DType; dl != dr && !s.Exact {
		p.remark(MixedDType, "%s: compared as %s", p.names.pair(dl.String(), dr.String()), s.Coarser)
	}
}

func (p *pair) remark(kind NoteKind, format string, args ...any) {
	p.row.Notes = append(p.row.Notes, Note{kind, fmt.Sprintf(format, args...)})
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

// lookAtDType sees a difference of dtypes: any with Options.StrictDType; else, on either side, a dtype that cannot hold what the
// order gives the entry in a model like the trace's own, or that has digits beyond it. The local side may have more, as an
// engine that keeps float32 where transformers rounds: that is seen last. What is only stored in a wider dtype is none.
func (w *walker) lookAtDType(p *pair) error {
	dl, dr := p.l.Rec.DType, p.r.Rec.DType
	if w.o.StrictDType && dl != dr {
		p.see(SeenDType, "%s", p.names.pair(dl.String(), dr.String()))
	}
	for i, v := range []measure.View{p.l, p.r}[:len(w.traces())] {
		d, want := v.Rec.DType, w.ordered(p, i)
		if i == local && d == w.o.Stored { // which says nothing of what was computed
			continue
		}
		if want == 0 || want == d || !want.Float() && !d.Float() {
			continue
		}
		if digits(d, want) {
			if w.o.AB && dl == dr { // neither is transformers
				continue
			}
			holds, err := measure.Holds(w.sides[i].trace, v.Rec, want)
			if err != nil {
				return err
			}
			if p.wider = p.wider || !holds && i == local; holds || i == local {
				continue
			}
		}
		p.see(SeenDType, "%s has %s where the order has %s (%s)", p.names[i].Trace, d, want, p.names.pair(dl.String(), dr.String()))
	}
	return nil
}

// digits reports whether a float type has more of them than another.
func digits(d, than hooks.DType) bool {
	return d.Float() && than.Float() && floats.Precision(d) > floats.Precision(than)
}

// ordered is the dtype that the order gives an entry in one side's trace; 0 where it is not known. A list of names does not
// know dtypes, and a mask may be written in any.
func (w *walker) ordered(p *pair, side int) hooks.DType {
	if p.entry.Op == nil || p.entry.Compare == order.Pattern {
		return 0
	}
	return expected(w.inPass(p.entry, p.l.Rec.Pass), w.sides[side].m.DType)
}

// inPass is an entry as a pass has it: a recorded program may compute it in another dtype there.
func (w *walker) inPass(e *order.Entry, pass int) *order.Entry {
	if w.o.Order == nil || !w.o.Order.IsRecorded() {
		return e
	}
	n := order.Node{Entry: w.o.Order.Index(e.Name), Pass: pass}
	if n.Entry < 0 || !w.o.Order.In(n) {
		return e
	}
	return w.o.Order.At(n)
}

// none reports whether the order is a recorded program that has no such tensor in a pass.
func (w *walker) none(name string, pass int) bool {
	if w.o.Order == nil || !w.o.Order.IsRecorded() {
		return false
	}
	at := w.o.Order.Index(name)
	return at >= 0 && !w.o.Order.In(order.Node{Entry: at, Pass: pass})
}
