package words

import (
	"fmt"
	"math"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// evidence writes the block about the first row that does not match.
func evidence(doc *Document, r *compare.Result) {
	d := r.Divergence
	if d == nil {
		return
	}
	row := &d.Row
	doc.blank()
	doc.say(Bad, FirstDivergence, "%s (%s): %s %s", row.Key(), about(row), row.Verdict, row.Class)
	if !unnamed(d) {
		name(doc, d, true)
	}
	doc.field("what", "%s", row.Detail)
	both(doc, r, row)
	certificate(doc, row)
	gap(doc, row)
	doc.field("decided by", "%s", r.Decided)
	blame(doc, row)
	if row.Name == order.InputIDs {
		script(doc, r, row.Pass)
	} else if r.Alone && row.Stats != nil {
		doc.field("values", "%s", statsText(*row.Stats))
	} else if !r.Alone {
		checksOf(doc, row)
		worst(doc, r, row)
		distributions(doc, r, row)
	}
	if unnamed(d) { // what is known comes before what is not
		name(doc, d, true)
	}
	if d.LastMatch != "" {
		doc.field("last match", "%s", d.LastMatch)
	}
	ancestors(doc, d)
	code(doc, d.Code)
	downstream(doc, d)
	for _, w := range d.Weights {
		doc.field("weight", "%s %v", w.Name, w.Shape)
	}
	doc.block("look at", d.Hints...)
}

// both says it where a wrong operation has the same numbers on both sides.
func both(doc *Document, r *compare.Result, row *compare.Row) {
	c, m := row.Isolated, row.Metrics
	if r.Alone || c == nil || c.Outcome != isolate.Bug || m == nil || m.Unequal+m.NonFinite > 0 || m.Elements == 0 {
		return
	}
	if m.Pattern != nil && m.Pattern.Gained+m.Pattern.Lost > 0 { // of a mask no element is counted
		return
	}
	doc.field("", "both sides are equal here: the reference has the same mistake, or both ran with another checkpoint or config.json")
}

// about is the operation and the place of a row.
func about(r *compare.Row) string {
	var parts []string
	if r.Op != "" {
		parts = append(parts, r.Op)
	}
	if r.Layer >= 0 {
		parts = append(parts, fmt.Sprintf("layer %d", r.Layer))
	}
	return strings.Join(append(parts, fmt.Sprintf("pass %d", r.Pass)), ", ")
}

// checksOf writes every check with its limit, where the limits come from and what would have passed.
func checksOf(doc *Document, r *compare.Row) {
	if r.Gate == nil || len(r.Gate.Checks) == 0 {
		return
	}
	label, broken := "limits", notFinite(r)
	for _, c := range r.Gate.Checks {
		text := rough(c.Error) + Either(c.Passed(), " <= ", " > ") + rough(c.Limit)
		if broken {
			text = "NaN, limit " + rough(c.Limit)
		}
		doc.field(label, "%s: %s", c.Name(), text)
		label = ""
	}
	if r.Gate.Passed() && !broken {
		doc.field("", "values that are finite on both sides are within these limits")
	}
	times := ""
	if r.Gate.Noise > 0 {
		times = fmt.Sprintf(", %s x the floor", rough(r.Gate.Noise))
	}
	if r.Decided != compare.ByLimit || math.IsInf(float64(r.Gate.Tolerance), 0) {
		doc.field("", "from %s; not a tolerance problem", gate.Source(r.Gate.From))
		return
	}
	doc.field("", "from %s; the tightest tolerance that passes is %s%s", gate.Source(r.Gate.From), rough(r.Gate.Tolerance), times)
}

// worst writes where the difference is largest.
func worst(doc *Document, res *compare.Result, r *compare.Row) {
	m := r.Metrics
	if m == nil {
		return
	}
	if m.Worst != nil {
		doc.field("worst element", "%s: %s %s, %s %s, difference %s", m.Spell(m.Worst),
			res.Local.Name.Label, digits(m.LocalAt), res.Reference.Name.Label, digits(m.ReferenceAt), rough(m.MaxAbs))
	}
	for _, a := range m.Axes {
		if a.RelL2 == 0 {
			continue
		}
		at := ""
		if a.Position != nil {
			at = fmt.Sprintf(" (position %d)", *a.Position)
		}
		doc.worstOf(a, at)
	}
	if q := m.Pattern; q != nil {
		doc.field("mask", "%d keys gained, %d lost; masked on both sides %d, seen on both %d", q.Gained, q.Lost, q.Masked, q.Shown)
		if len(q.Examples) > 0 {
			doc.field("", "such as %s", strings.ReplaceAll(strings.Trim(fmt.Sprint(q.Examples), "[]"), "] [", "; "))
		}
	}
	if m.NonFinite > 0 {
		doc.field("not finite", "%d elements on one side only, the first at %s", m.NonFinite, m.Spell(m.NonFiniteAt))
	}
	if !math.IsNaN(float64(m.Scale)) && !math.IsNaN(float64(m.RelL2)) {
		doc.field("fitted scale", "%s, cosine %s", digits(m.Scale), parallel(m.Cosine))
	}
	if m.Floor > m.Norm {
		doc.field("floor", "%s, %s; the norm of %s is %s", rough(m.Floor), m.FloorFrom, res.Reference.Name.Side, rough(m.Norm))
	}
}

// worstOf says which slice along an axis differs most.
func (d *Document) worstOf(a measure.AxisError, at string) {
	d.field("worst "+a.Axis, "%d%s of %d: relative L2 %s", a.Worst, at, a.Size, rough(a.RelL2))
}

func distributions(doc *Document, res *compare.Result, r *compare.Row) {
	m := r.Metrics
	if m == nil || m.Compared == 0 || m.Pattern != nil && math.IsNaN(float64(m.RelL2)) {
		return
	}
	steps := ""
	if m.MaxULP > 0 {
		steps = fmt.Sprintf(", by up to %d steps of their dtype", m.MaxULP)
	}
	doc.field("unequal", "%d of %d elements%s", m.Unequal, m.Compared, steps)
	doc.field(res.Local.Name.Label, "%s", statsText(m.Local))
	doc.field(res.Reference.Name.Label, "%s", statsText(m.Reference))
}

// downstream writes how far the error goes. That the limits of later entries do not show a wrong operation does not make it right, and the line says so.
func downstream(doc *Document, of *compare.Divergence) {
	d := of.Downstream
	if d == nil {
		return
	}
	entries, next, to := count(d.Compared, "entry", "entries"), "", " in this pass"
	switch {
	case d.Until != "":
		to = ", up to " + d.Until + ", which is wrong on its own inputs,"
	case d.Partial:
		next, to = "the next ", ""
	}
	looked := fmt.Sprintf("%d of %s%s computed from it%s", d.Past, next, entries, to)
	switch {
	case d.Compared == 0:
		doc.field("downstream", "%s is computed from it next, and wrong on its own inputs", d.Until)
	case d.Past == 0:
		all := Either(d.Partial, "the next ", Either(d.Compared == 1, "the ", "all ")) + entries
		within := Either(d.Compared == 1, "is within its limit", "are within their limits")
		doc.field("downstream", "%s computed from it%s %s%s", all, to, within, Either(wrongOperation(of), "; the operation is still wrong, and another prompt may show more of it", ""))
	case d.Vanishes != "":
		doc.field("downstream", "ends at %s: this entry and all later ones are within their limits; %s are not, the last is %s", d.Vanishes, looked, d.Last)
	default:
		doc.field("downstream", "reaches %s, relative L2 %s: %s are over their limits", d.Last, rough(d.LastRelL2), looked)
	}
}

// wrongOperation reports whether the operation of a divergence is wrong on its own inputs, or an earlier operation without a compared
// result.
func wrongOperation(d *compare.Divergence) bool {
	c := d.Row.Isolated
	return d.Fault != nil || c != nil && c.Outcome == isolate.Bug
}

// maxSteps bounds the steps that the block shows.
const maxSteps = 40

// code writes the lines of source that compute the entry, and how the steps of the two sides differ.
func code(doc *Document, c *compare.Code) {
	if c == nil {
		return
	}
	var sources []string
	for _, side := range []struct{ name, line string }{{"reference ", c.Reference}, {"local ", c.Local}} {
		if side.line != "" {
			sources = append(sources, side.name+side.line)
		}
	}
	doc.block("source", sources...)
	switch n := len(c.Steps); {
	case n > 0:
		doc.field("steps", "of the reference (-) and your port (+):")
		doc.block("", c.Steps[:min(n, maxSteps)]...)
		if n > maxSteps {
			doc.field("", "and %s; tracediff diff-program shows all", More(n-maxSteps))
		}
	case c.Compared:
		doc.field("steps", "the same on both sides: their input numbers differ")
	}
}

// ancestors writes the nearest compared inputs and what lies between.
func ancestors(doc *Document, d *compare.Divergence) {
	doc.block("computed from", parentsOf(d, maxListed, "and ")...)
	if len(d.Between) > 0 {
		doc.field("not compared", "%s", some(d.Between))
	}
}
