package report

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

// divergence writes the block about the first row that does not match.
func (p *printer) divergence(r *compare.Result) {
	d := r.Divergence
	if d == nil {
		return
	}
	row := &d.Row
	p.blank()
	p.say(p.style.bad, "first divergence", "%s (%s): %s %s", row.Key(), about(row), row.Verdict, row.Class)
	if !unnamed(d) {
		p.name(d, true)
	}
	p.field("what", "%s", row.Detail)
	p.both(r, row)
	p.certificate(row)
	p.gap(row)
	p.field("decided by", "%s", r.Decided)
	p.blame(row)
	if row.Name == order.InputIDs {
		p.script(r, row.Pass)
	} else if r.Alone {
		p.values(row)
	} else {
		p.gate(row)
		p.worst(r, row)
		p.distributions(r, row)
	}
	if unnamed(d) { // what is known comes before what is not
		p.name(d, true)
	}
	if d.LastMatch != "" {
		p.field("last match", "%s", d.LastMatch)
	}
	p.ancestors(d)
	p.code(d.Code)
	p.downstream(d)
	for _, w := range d.Weights {
		p.field("weight", "%s %v", w.Name, w.Shape)
	}
	for i, hint := range d.Hints {
		label := ""
		if i == 0 {
			label = "look at"
		}
		p.field(label, "%s", hint)
	}
}

// both says it where a wrong operation has the same numbers on both sides.
func (p *printer) both(r *compare.Result, row *compare.Row) {
	c, m := row.Isolated, row.Metrics
	if r.Alone || c == nil || c.Outcome != isolate.Bug || m == nil || m.Unequal+m.NonFinite > 0 || m.Elements == 0 {
		return
	}
	if m.Pattern != nil && m.Pattern.Gained+m.Pattern.Lost > 0 { // of a mask no element is counted
		return
	}
	p.field("", "both sides are equal here: the reference has the same mistake, or both ran with another checkpoint or config.json than this one")
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

// gate writes every check with its limit, where the limits come from and what would have passed.
func (p *printer) gate(r *compare.Row) {
	if r.Gate == nil || len(r.Gate.Checks) == 0 {
		return
	}
	label, broken := "limits", notFinite(r)
	for _, c := range r.Gate.Checks {
		text := number(c.Error) + either(c.Passed(), " <= ", " > ") + number(c.Limit)
		if broken {
			text = "NaN, limit " + number(c.Limit)
		}
		p.field(label, "%s: %s", c.Name(), text)
		label = ""
	}
	if r.Gate.Passed() && !broken {
		p.field("", "the values that both sides show are within them")
	}
	times := ""
	if r.Gate.Noise > 0 {
		times = fmt.Sprintf(", %s x the floor", number(r.Gate.Noise))
	}
	if r.Decided != compare.ByLimit || math.IsInf(float64(r.Gate.Tolerance), 0) {
		p.field("", "from %s; not a tolerance problem", gate.Source(r.Gate.From))
		return
	}
	p.field("", "from %s; the tightest tolerance that passes is %s%s", gate.Source(r.Gate.From), number(r.Gate.Tolerance), times)
}

// worst writes where the difference is largest.
func (p *printer) worst(res *compare.Result, r *compare.Row) {
	m := r.Metrics
	if m == nil {
		return
	}
	if m.Worst != nil {
		p.field("worst element", "%s: %s %s, %s %s, difference %s", m.Spell(m.Worst),
			res.Local.Name.Label, digits(m.LocalAt), res.Reference.Name.Label, digits(m.ReferenceAt), number(m.MaxAbs))
	}
	for _, a := range m.Axes {
		if a.RelL2 == 0 {
			continue
		}
		at := fmt.Sprint(a.Worst)
		if a.Position != nil {
			at += fmt.Sprintf(" (position %d)", *a.Position)
		}
		p.field("worst "+a.Axis, "%s of %d: relative L2 %s", at, a.Size, number(a.RelL2))
	}
	if q := m.Pattern; q != nil {
		p.field("mask", "%d keys gained, %d lost; masked on both sides %d, seen on both %d", q.Gained, q.Lost, q.Masked, q.Shown)
		if len(q.Examples) > 0 {
			p.field("", "such as %s", strings.ReplaceAll(strings.Trim(fmt.Sprint(q.Examples), "[]"), "] [", "; "))
		}
	}
	if m.NonFinite > 0 {
		p.field("not finite", "%d elements on one side alone, the first at %s", m.NonFinite, m.Spell(m.NonFiniteAt))
	}
	if !math.IsNaN(float64(m.Scale)) && !math.IsNaN(float64(m.RelL2)) {
		p.field("fitted scale", "%s, cosine %s", digits(m.Scale), parallel(m.Cosine))
	}
	if m.Floor > m.Norm {
		p.field("floor", "%s, %s; the norm of %s is %s", number(m.Floor), m.FloorFrom, res.Reference.Name.Side, number(m.Norm))
	}
}

// digits is a value in full float32 precision, to be found again in a dump.
func digits(n measure.Number) string { return fmt.Sprintf("%.9g", float64(n)) }

func (p *printer) distributions(res *compare.Result, r *compare.Row) {
	m := r.Metrics
	if m == nil || m.Compared == 0 || m.Pattern != nil && math.IsNaN(float64(m.RelL2)) {
		return
	}
	steps := ""
	if m.MaxULP > 0 {
		steps = fmt.Sprintf(", by up to %d steps of their dtype", m.MaxULP)
	}
	p.field("unequal", "%d of %d elements%s", m.Unequal, m.Compared, steps)
	p.field(res.Local.Name.Label, "%s", stats(m.Local))
	p.field(res.Reference.Name.Label, "%s", stats(m.Reference))
}

// values writes the numbers of a tensor of a trace alone.
func (p *printer) values(r *compare.Row) {
	if r.Stats != nil {
		p.field("values", "%s", stats(*r.Stats))
	}
}

func stats(s measure.Stats) string {
	text := fmt.Sprintf("min %s, max %s, mean %s, std %s", number(s.Min), number(s.Max), number(s.Mean), number(s.Std))
	for _, c := range []struct {
		n    int64
		what string
	}{{s.NaN, "NaN"}, {s.Inf, "+Inf"}, {s.NInf, "-Inf"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	return text
}

// downstream writes how far the error goes. That the limits of later entries do not show a wrong operation does not make it right, and the line says so.
func (p *printer) downstream(of *compare.Divergence) {
	d := of.Downstream
	if d == nil {
		return
	}
	looked := fmt.Sprintf("%d of %s computed from it in this pass", d.Past, count(d.Compared, "entry", "entries"))
	if d.Partial {
		looked = fmt.Sprintf("%d of the next %s computed from it", d.Past, count(d.Compared, "entry", "entries"))
	}
	if d.Until != "" {
		looked = fmt.Sprintf("%d of %s computed from it, up to %s, which is wrong by itself,", d.Past, count(d.Compared, "entry", "entries"), d.Until)
	}
	switch {
	case d.Compared == 0:
		p.field("downstream", "%s is computed from it next, and wrong by itself", d.Until)
	case d.Past == 0:
		p.field("downstream", "%s%s", within(d), either(wrongOperation(of), "; the operation is wrong all the same, and another prompt may show more of it", ""))
	case d.Vanishes != "":
		p.field("downstream", "ends at %s: it and all after it are within their limits; %s are not, the last is %s", d.Vanishes, looked, d.Last)
	default:
		p.field("downstream", "reaches %s, relative L2 %s: %s are over their limits", d.Last, number(d.LastRelL2), looked)
	}
}

// within is the line about the entries after a divergence if their limits show nothing.
func within(d *compare.Downstream) string {
	entries := either(d.Partial, "the next ", either(d.Compared == 1, "the ", "all ")) + count(d.Compared, "entry", "entries")
	text := entries + " computed from it in this pass"
	switch {
	case d.Until != "":
		text = entries + " computed from it, up to " + d.Until + ", which is wrong by itself,"
	case d.Partial:
		text = entries + " computed from it"
	}
	return text + either(d.Compared == 1, " is within its limit", " are within their limits")
}

// wrongOperation reports whether the operation of a divergence, or one before it that was not compared, is wrong on its own inputs.
func wrongOperation(d *compare.Divergence) bool {
	c := d.Row.Isolated
	return d.Fault != nil || c != nil && c.Outcome == isolate.Bug
}

// maxSteps bounds the steps that the block shows.
const maxSteps = 40

// code writes the lines of source that compute the entry, and how the steps of the two sides differ.
func (p *printer) code(c *compare.Code) {
	if c == nil {
		return
	}
	label := "source"
	for _, side := range []struct{ name, line string }{{"reference", c.Reference}, {"local", c.Local}} {
		if side.line != "" {
			p.field(label, "%s %s", side.name, side.line)
			label = ""
		}
	}
	switch {
	case len(c.Steps) > 0:
		p.field("steps", "of the reference (-) and of the local side (+):")
		for i, step := range c.Steps {
			if i == maxSteps {
				p.field("", "and %d more; tracediff diff-program shows all", len(c.Steps)-i)
				break
			}
			p.field("", "%s", step)
		}
	case c.Compared:
		p.field("steps", "the same on both sides: the numbers that they read differ")
	}
}

// ancestors writes the nearest compared inputs and what lies between.
func (p *printer) ancestors(d *compare.Divergence) {
	for i, a := range d.Parents {
		if i == maxListed {
			p.field("", "and %d more", len(d.Parents)-i)
			break
		}
		label := ""
		if i == 0 {
			label = "computed from"
		}
		p.field(label, "%s %s", a.Key, a.Verdict)
	}
	if n := len(d.Between); n > 0 {
		names := d.Between[:min(n, maxListed)]
		text := strings.Join(names, ", ")
		if n > maxListed {
			text += fmt.Sprintf(" and %d more", n-maxListed)
		}
		p.field("not compared", "%s", text)
	}
}
