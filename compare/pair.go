package compare

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// pair is two tensors being compared into a row. Each step of the walk adds one fact; settle decides the row's
// verdict from all facts.
type pair struct {
	row   *Row
	entry *order.Entry
	early bool // the order has it before the layers
	names sides.Names

	axes string       // letters, empty when unknown
	cut  *measure.Cut // of the reference; nil for all of it
	l, r measure.View

	arithmetic hooks.DType // the coarsest float dtype used in computing either tensor, according to the traces
	seen       observation
	isolated   isolation
	shows      evidence
}

// observation is the first visible difference between two tensors, and a sentence about it.
type observation struct {
	what   Seen
	detail string
}

// isolation is the result of certifying a pair's entry.
type isolation struct {
	standing Standing
	wrong    string // what isolation accuses, in words
	gap      string // for an entry over its limit: where the chain breaks, or why this is unknown
	from     string // for an entry over its limit: key of the known divergence at the start of the chain
}

// evidence is whether the tensors of a pair can show anything.
type evidence struct {
	content Content
	why     string // why it shows nothing
}

// see notes what a pair shows, unless something was seen before.
func (p *pair) see(what Seen, format string, args ...any) {
	if p.seen.what == SeenWithin {
		p.seen = observation{what, fmt.Sprintf(format, args...)}
	}
}

// agrees reports whether nothing was seen that differs.
func (p *pair) agrees() bool { return p.seen.what == SeenWithin || p.seen.what == SeenWider }

func (p *pair) remark(kind NoteKind, format string, args ...any) {
	p.row.Notes = append(p.row.Notes, Note{kind, fmt.Sprintf(format, args...)})
}

// oneRow reports whether the compared tensors have the row of one token: their axis of tokens has one index.
func (p *pair) oneRow() bool {
	at := strings.IndexRune(p.axes, order.AxisToken)
	return at >= 0 && at < len(p.l.Shape) && p.l.Shape[at] == 1
}

// place describes the indexes of an element of the reference's tensor, for the axes with more than one index:
// "token 4, key 0". If the role of an axis is unknown, it returns the plain indexes.
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
		p.see(SeenNonFinite, "%s overflowed in %s, the first at %s: %s has up to %.3g there, and %s ends at %g", o.DType, amount.Of(int(o.Elements), "element"),
			p.place(m.NonFiniteAt), p.names[reference].Side, float64(o.Largest), o.DType, float64(o.End))
	}
	if m.NonFinite > 0 {
		p.see(SeenNonFinite, "NaN or infinite on one side only in %s, the first at %s", amount.Of(int(m.NonFinite), "element"), p.place(m.NonFiniteAt))
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
	more := "attends to " + amount.Of(int(m.Gained), "extra key")
	less := "misses " + amount.Of(int(m.Lost), "key")
	switch {
	case m.Lost == 0:
		return more
	case m.Gained == 0:
		return less
	}
	return more + " and " + less
}

// note adds remarks about a row, and finds out whether its tensors can test anything.
func (p *pair) note(s *measure.Sums) {
	m := p.row.Metrics
	if p.shows.content, p.shows.why = p.contentOf(s); p.shows.content == NotFinite {
		p.remark(BothNaN, "%s", p.shows.why)
	}
	if s.TooLong {
		p.remark(LongAxis, "an axis has more than %d indexes, and they were not measured one by one", measure.MaxSlices)
	}
	if m.Floor > 2*m.Norm && !p.names.Alone() { // less is what terms that point in different directions do
		p.remark(Floored, "errors are relative to %.3g, %s, not to the %.3g of %s", float64(m.Floor), m.FloorFrom, float64(m.Norm), p.names[reference].Side)
	}
	p.notePrinted()
	if dl, dr := p.l.Rec.DType, p.r.Rec.DType; dl != dr && !s.Exact {
		p.remark(MixedDType, "%s: compared as %s", p.names.Pair(dl.String(), dr.String()), s.Coarser)
	}
}

// contentOf says whether the tensors of a pair can show anything, and where they cannot, why: both are constant, zero or empty. A
// single number is constant and yet a test, but for 0. What is constant may be confirmed later.
func (p *pair) contentOf(s *measure.Sums) (c Content, why string) {
	m := p.row.Metrics
	constant := func(of *measure.Stats) bool { return of.Min == of.Max && (m.Compared > 1 || of.Min == 0) }
	switch _, given := p.entry.Op.(op.Given); {
	case m.Elements == 0:
		why = "empty"
	case m.NaNBoth > 0:
		return NotFinite, fmt.Sprintf("%d of %d elements are NaN or overflowed%s", m.NaNBoth, m.Elements, p.names.Both())
	case p.entry.Op != nil && p.entry.Compare == order.All && m.Masked+min(m.Local.NInf, m.Reference.NInf) > 0:
		return NotFinite, fmt.Sprintf("some of %d elements are as low as masked values%s, but the order has no mask here", m.Elements, p.names.Both())
	case p.entry.Name == order.InputIDs || given:
	case p.entry.Compare == order.Pattern:
		if s.Pattern.Masked == 0 && s.Pattern.Shown > 0 {
			why = "nothing is masked"
		} else if s.Pattern.Shown == 0 {
			why = "everything is masked"
		}
	case m.Compared == 0:
		why = "no element is compared"
	case !constant(&m.Local) || !constant(&m.Reference):
	case m.Reference.Min == 0:
		why = p.names[reference].Side + " is zero"
	default:
		why = fmt.Sprintf("%s is %g everywhere", p.names[reference].Side, float64(m.Reference.Min))
	}
	if why != "" {
		return Untested, why
	}
	return Tested, ""
}

// printed returns the facts about a side parsed from a text of rounded numbers, see [capture.Printed]; nil if both
// sides are tensors. The reader of such a text fills in the closest tensor to the other side's with the same
// printed form. A mismatch is then a mismatch of the printed numbers. A match proves nothing, and [Judge] never
// lets such a row match.
func (p *pair) printed() *capture.Printed {
	for _, v := range []capture.Record{p.l.Rec, p.r.Rec} {
		if v.Printed != nil {
			return v.Printed
		}
	}
	return nil
}

// notePrinted says how much of a tensor a text has.
func (p *pair) notePrinted() {
	if t := p.printed(); t != nil {
		p.remark(NotePrinted, "the text has %d of %d elements, rounded to %g: the error is at least this", t.Elements, t.All, 2*t.Half)
	}
}

// Overflow says that elements of the local tensor are infinite because its dtype cannot hold the reference's
// numbers. The operation itself may be right: in a wider dtype these elements would be finite.
type Overflow struct {
	DType    string         `json:"dtype"`
	Elements int64          `json:"elements"` // infinite on the local side
	Largest  measure.Number `json:"largest"`  // magnitude that the reference has in them
	End      measure.Number `json:"end"`      // the largest number of the dtype
}

// Overflowed reports whether a row is a mismatch since its local dtype ends too early, and is not wrong on its own inputs.
func (r *Row) Overflowed() bool {
	return r.Overflow != nil && r.Decided != ByIsolation && r.Decided != ByBoth
}

// overflowOf examines a pair with elements that are finite on only one side. It returns nil unless every such
// element is an overflow of dtype d and the remaining elements are within their limit.
func (p *pair) overflowOf(d hooks.DType) (*Overflow, error) {
	m := p.row.Metrics
	if m == nil || m.NonFinite == 0 || !d.Float() || !p.l.Rec.DType.Float() || p.entry.Compare != order.All || !p.row.Gate.Passed() {
		return nil, nil
	}
	return overflow(p.l, p.r, d, gate.TableLimit(d))
}

// overflow looks at the elements of two views of one shape. An infinity is an overflow of d where the reference has the same sign and is no
// less than the largest number of d, less a relative error that it may have.
func overflow(l, r measure.View, d hooks.DType, limit float64) (*Overflow, error) {
	end := floats.Largest(d)
	o := &Overflow{DType: d.String(), End: measure.Number(end)}
	n := measure.Elements(l.Shape)
	x, y := make([]float64, min(n, overflowChunk)), make([]float64, min(n, overflowChunk))
	for at := 0; at < n; at += len(x) {
		x, y = x[:min(len(x), n-at)], y[:min(len(y), n-at)]
		if err := l.Values(x, at); err != nil {
			return nil, err
		}
		if err := r.Values(y, at); err != nil {
			return nil, err
		}
		for i, v := range x {
			switch w := y[i]; {
			case measure.Finite(v) == measure.Finite(w):
			case !math.IsInf(v, 0) || !measure.Finite(w) || v > 0 != (w > 0) || math.Abs(w)*(1+limit) < end:
				return nil, nil
			default:
				o.Elements++
				o.Largest = max(o.Largest, measure.Number(math.Abs(w)))
			}
		}
	}
	return o, nil
}

// overflowChunk is how many elements are looked at at a time.
const overflowChunk = 1 << 16
