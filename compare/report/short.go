package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/order"
)

const (
	pageWidth = plain.Columns // of the short view
	maxShort  = 3             // of many lines of a sort before "--verbose has N more"
)

// short writes the page: what was compared, a line a layer, the first divergence, and what to do next.
func (p *printer) short(r *compare.Result) error {
	p.width, p.label = pageWidth, 13
	p.sides(r)
	if narrowed(r) {
		p.scope(r)
	}
	p.shortTokens(r)
	if len(r.Rows) > 0 {
		p.blank()
		if err := p.summary(r); err != nil {
			return fmt.Errorf("writing the summary: %w", err)
		}
		p.legend(r)
	}
	p.shortDivergence(r)
	p.missing(r)
	p.blank()
	p.others(r)
	p.checked(r)
	p.nextToken(r)
	p.shortNotes(r)
	p.sight(r.Sight)
	p.notCompared(r)
	p.incomplete(r)
	p.expected(r)
	p.since()
	p.verdictLine(r, false)
	return nil
}

// narrowed reports whether less was asked for, or captured, than some level of the whole model.
func narrowed(r *compare.Result) bool {
	return slices.ContainsFunc([]capture.Scope{r.Local.Scope, r.Reference.Scope, r.Typed}, narrow)
}

// narrow reports whether a scope has less than a level.
func narrow(s capture.Scope) bool {
	return len(s.Layers)+len(s.Passes)+len(s.Positions)+len(s.Tensors) > 0
}

// shortTokens writes the ids of the first pass, as many as fit a line, and how many steps were decoded.
func (p *printer) shortTokens(r *compare.Result) {
	steps, passes := 0, 0
	for _, in := range r.Inputs {
		if in.Pass > 0 {
			steps, passes = steps+len(in.Local), passes+1
			continue
		}
		most := 32
		text := ids(in.Local, in.Texts, most)
		for most > 2 && len([]rune(text)) > pageWidth-len("tokens:    ") {
			most -= 2
			text = ids(in.Local, in.Texts, most)
		}
		p.line("tokens:    %s", text)
	}
	if steps > passes { // refinement steps, or a prompt in parts
		p.line("further:   %s, %s in all", count(passes, "pass", "passes"), count(steps, "token", "tokens"))
	} else if steps > 0 {
		p.line("decoded:   %s, one a pass", count(steps, "token", "tokens"))
	}
}

// shortDivergence is the block about the first row that does not match: what is wrong with its proof, where, how large, what
// came before, where it goes, what to do next.
func (p *printer) shortDivergence(r *compare.Result) {
	d := r.Divergence
	if d == nil {
		return
	}
	row := &d.Row
	p.blank()
	p.say(p.style.bad, "first divergence", "%s (%s)", row.Key(), row.Class)
	if !unnamed(d) {
		p.name(d, false)
	}
	p.field("what", "%s", row.Detail)
	p.both(r, row)
	if row.Name == order.InputIDs {
		p.script(r, row.Pass)
	}
	if unnamed(d) {
		p.worstSlices(row)
	}
	p.size(r, row)
	if unnamed(d) { // what is known comes before what is not
		p.name(d, false)
	}
	p.shortGap(row)
	p.came(d)
	p.code(d.Code)
	p.downstream(d)
	for i, hint := range d.Hints {
		if i == maxShort {
			break
		}
		p.field(either(i == 0, "next", ""), "%s", hint)
	}
	if f, _ := d.Bug(); len(d.Hints) == 0 && f != nil {
		what := either(unnamed(d), "check this operation in the local model", "correct this in the local model")
		p.field("next", "%s, %s", what, either(r.Given, "dump its tensors, compare again", "then run the same command again"))
	}
}

// size says how large the difference is, and where in the tensor it is largest.
func (p *printer) size(r *compare.Result, row *compare.Row) {
	m := row.Metrics
	if m == nil || row.Name == order.InputIDs {
		return
	}
	failed, limit := errorOf(row)
	both := row.Decided == compare.ByBoth && row.Facts.Seen != compare.SeenPast // else the sentence above has the error
	if (row.Decided == compare.ByIsolation || both) && m.Pattern == nil && failed != "-" && limit != "-" {
		p.field("error", "%s, limit %s", failed, limit)
	}
	if m.Worst != nil && row.Facts.Seen != compare.SeenKeys {
		p.field("largest at", "%s: %s %s, %s %s", m.Spell(m.Worst), r.Local.Name.Label, digits(m.LocalAt), r.Reference.Name.Label, digits(m.ReferenceAt))
	}
}

// shortGap says why an error past its limit is no drift.
func (p *printer) shortGap(row *compare.Row) {
	switch {
	case row.Gap == "":
	case row.Facts.Standing == compare.StandingNone:
		p.field("not drift", "this operation was not verified: %s", row.Gap)
	default:
		p.field("not drift", "this operation is correct, but not every operation before it was verified: %s", row.Gap)
	}
}

// came says which of its inputs match.
func (p *printer) came(d *compare.Divergence) {
	var parts []string
	for i, a := range d.Parents {
		if i == maxShort {
			parts = append(parts, fmt.Sprintf("%d more", len(d.Parents)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s", a.Key, a.Verdict))
	}
	switch {
	case parts != nil:
		p.field("computed from", "%s", strings.Join(parts, ", "))
	case d.LastMatch != "":
		p.field("last match", "%s", d.LastMatch)
	}
	if n := len(d.Between); n > 0 {
		text := strings.Join(d.Between[:min(n, maxShort)], ", ")
		if n > maxShort {
			text += fmt.Sprintf(" and %d more", n-maxShort)
		}
		p.field("not compared", "%s", text)
	}
}

// others are the mismatches behind the first that are wrong by themselves, and what was allowed to differ.
func (p *printer) others(r *compare.Result) {
	if n := len(r.Roots); n > 1 {
		names := strings.Join(r.Roots[:min(n, maxShort)], ", ")
		if n > maxShort {
			names += fmt.Sprintf(" and %d more", n-maxShort)
		}
		p.line("wrong by themselves: %d of %s: %s", n, count(r.Mismatches, "mismatch", "mismatches"), names)
	}
	for _, a := range r.Allowed {
		p.line("allowed: %s", allowance(a))
	}
	p.recomputed(r)
	p.baseline(r)
}

// recomputed names the entries that differ and decide nothing, since the side that captured them had recomputed them.
func (p *printer) recomputed(r *compare.Result) {
	var keys []string
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Derived && row.Verdict == compare.Mismatch {
			keys = append(keys, row.Key())
		}
	}
	if n := len(keys); n > 0 {
		text := strings.Join(keys[:min(n, 2)], ", ")
		if n > 2 { // one name, so that it stays one line
			text = fmt.Sprintf("%s and %d more", keys[0], n-1)
		}
		p.line("derived: %s %s and %s nothing: %s", count(n, "entry", "entries"), either(n == 1, "differs", "differ"), either(n == 1, "decides", "decide"), text)
	}
}

// checked says what the verdict rests on beside the limits: how many operations were computed again, and what came of it.
func (p *printer) checked(r *compare.Result) {
	s := r.Isolation
	switch {
	case r.Uncertified != "":
		why := ": " + r.Uncertified
		if d := r.Divergence; d != nil && d.Row.Gap == r.Uncertified { // its block says why
			why = ""
		}
		p.line("operations: not verified, only the limits decide%s", why)
	case s == nil && r.NotIsolated != "":
		p.line("operations: not verified: %s", r.NotIsolated)
	case s == nil:
	default:
		text := fmt.Sprintf("operations: %d recomputed on %s own inputs: %d EXACT, %d ROUNDING", s.Certified, possessive(r), s.Exact, s.Rounding)
		for _, c := range []struct {
			n    int
			what string
		}{{s.Bugs, "BUG"}, {s.Layout, string(isolate.OtherLayout)}, {s.Unidentified, string(isolate.Unidentified)}, {s.Unverified, string(isolate.NotCertified)}} {
			if c.n > 0 {
				text += fmt.Sprintf(", %d %s", c.n, c.what)
			}
		}
		if s.NotIsolated > 0 {
			text += fmt.Sprintf("; %d could not be recomputed", s.NotIsolated)
		}
		p.line("%s", text)
		p.notRecomputed(s)
		if s.Arithmetic != isolate.Auto || s.Bound != "probabilistic" {
			p.line("as asked for: %s arithmetic, %s bounds", s.Arithmetic, s.Bound)
		}
		p.bugs(s)
		p.ways(s)
	}
}

// bugs are the causes of what is wrong and all entries that each explains, where that is more than the first divergence.
func (p *printer) bugs(s *compare.Isolation) {
	var bugs []compare.Finding
	for _, f := range s.Findings {
		if f.Bug != nil && f.Kind != compare.LayoutFound {
			bugs = append(bugs, f)
		}
	}
	if len(bugs) == 1 && bugs[0].Rows == 1 {
		return
	}
	for i, f := range bugs {
		if i == 2*maxShort {
			p.line("  --verbose has %s more", count(len(bugs)-i, "bug", "bugs"))
			return
		}
		p.broken(4, fmt.Sprintf("  bug in %s: %s (%s)", f.Where(), f.What, count(f.Rows, "entry", "entries")))
	}
}

func possessive(r *compare.Result) string {
	if r.Alone {
		return "their"
	}
	return r.Local.Name.Label + "'s"
}

// ways are what the engine does otherwise than transformers without being wrong.
func (p *printer) ways(s *compare.Isolation) {
	var ways []compare.Finding
	for _, f := range s.Findings {
		if f.Bug == nil {
			ways = append(ways, f)
		}
	}
	lines := joined(ways)
	for i, f := range lines {
		if i == maxShort {
			p.line("  --verbose has %d more", len(lines)-i)
			return
		}
		way := either(f.Kind == compare.OtherSummation, "adds in another order", "rounds differently")
		p.broken(4, fmt.Sprintf("  %s, no bug: %s: %s (%s)", way, wayOf(f), f.What, count(f.Rows, "entry", "entries")))
	}
}

// nextToken is the choice of the next token in a line.
func (p *printer) nextToken(r *compare.Result) {
	if r.Final == nil {
		return
	}
	f := &r.Final.Passes[r.Final.Shown]
	n := &f.Last
	text := ""
	if n.Agree {
		text = fmt.Sprintf("%s on both sides (weak evidence)", token(n.Top, n.Local))
	} else {
		text = fmt.Sprintf("%s %s, %s %s", r.Local.Name.Label, token(n.Top, n.Local), r.Reference.Name.Label, token(n.Top, n.Reference))
		if n.Tie {
			text += " (a tie: within the noise)"
		}
	}
	if passes := len(r.Final.Passes); passes > 1 {
		text += fmt.Sprintf("; the same in %d of %d passes", r.Final.Agree, passes)
	}
	p.line("next token: %s", text)
}

// shortNotes are the remarks that a person has to know of to read the verdict.
func (p *printer) shortNotes(r *compare.Result) {
	var lines []string
	seen := map[compare.NoteKind]bool{}
	for i := range r.Rows {
		for _, n := range r.Rows[i].Notes {
			if seen[n.Kind] {
				continue
			}
			switch n.Kind {
			case compare.Drift, compare.MixedDType, compare.BothNaN, compare.OpUnverified, compare.NotePrinted:
				seen[n.Kind] = true
				lines = append(lines, fmt.Sprintf("note (%s): %s: %s", n.Kind, r.Rows[i].Key(), n.Text))
			}
		}
	}
	for _, l := range r.Layouts {
		lines = append(lines, "layout: "+l)
	}
	for _, n := range r.Notes {
		if strings.HasPrefix(n, compare.AskedFor) && r.Coverage.Entries > r.Coverage.Compared && !r.Stopped { // see notCompared
			continue
		}
		lines = append(lines, "note: "+n)
	}
	for i, l := range lines {
		if i == 2*maxShort {
			p.line("--verbose has %s more", count(len(lines)-i, "note", "notes"))
			return
		}
		p.line("%s", l)
	}
}

// notCompared says what a comparison without a mismatch is not about, and how to get it; of one that stopped, how to go on.
func (p *printer) notCompared(r *compare.Result) {
	c := r.Coverage
	n := c.Entries - c.Compared
	if n <= 0 {
		return
	}
	if r.Stopped {
		p.line("not compared: what comes after the first divergence (--all goes on)")
		return
	}
	text := fmt.Sprintf("not compared: %d of %s", n, count(c.Entries, "entry", "entries"))
	level := 3
	for _, s := range []capture.Scope{r.Local.Scope, r.Reference.Scope, r.Typed} {
		if s.Level > 0 {
			level = min(level, s.Level)
		}
	}
	switch {
	case narrow(r.Typed):
		text += ", as asked for: --" + strings.ReplaceAll(limitsOf(r.Typed), ", ", ", --")
	case narrowed(r):
		text += ", as captured: " + scopes(r)
	case r.Map != nil && r.Map.Open > 0: // no other capture shows what has no name
		text += "; " + count(r.Map.Open, "tensor", "tensors") + " of the dump " + either(r.Map.Open == 1, "has", "have") + " no line in a map"
	case r.Given:
		text += "; tracediff order lists all names to dump"
	case level < 3:
		text += fmt.Sprintf("; --level %d captures more of them", level+1)
	}
	p.line("%s", text)
}
