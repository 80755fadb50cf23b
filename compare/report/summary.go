package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter/tw"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

const (
	// maxGroups is how many lines the layers of one summary may take: more are drawn together, alike or not.
	maxGroups = 12
	// before and after are how many entries are listed around the first divergence.
	before, after = 3, 3
)

// group is one line of the summary: what the rows of a part of the model come to.
type group struct {
	part       string // "input", "layer", "output", "pass" or "all"
	pass       int    // −1 for all passes
	first      int    // of a run of layers or passes
	last       int
	rows       int
	mismatches int
	unequal    int // rows of which the two sides are not equal to the bit
	unjudged   int
	worst      *compare.Row // of all rows the first that does not match, else the one nearest to its limit
	certified  map[isolate.Outcome]int
	remarks    map[string]int // what is no plain match, counted
}

// summary writes a line a layer, and below it the entries around the first divergence.
func (p *printer) summary(r *compare.Result) error {
	if err := p.groups(r); err != nil {
		return err
	}
	return p.around(r)
}

// groups writes the lines.
func (p *printer) groups(r *compare.Result) error {
	const right, left = tw.AlignRight, tw.AlignLeft
	header, align := []string{"", "part", "entries", "error", "limit", "largest at"}, []tw.Align{left, left, right, right, right, left}
	if r.Alone {
		header, align = []string{"", "part", "entries", "on their own inputs"}, []tw.Align{left, left, right, left}
	}
	var rows [][]string
	for _, g := range grouped(r) {
		cells := []string{p.outcome(g), g.where(), strconv.Itoa(g.rows)}
		if r.Alone {
			cells = append(cells, g.outcomes())
		} else {
			failed, limit := errorOf(g.worst)
			if g.mismatches == 0 && g.equal() {
				limit = "-"
			}
			cells = append(cells, failed, limit, clean(g.at()))
		}
		rows = append(rows, cells)
		if text := g.remarked(r.Alone); text != "" {
			row := make([]string, len(cells))
			row[len(row)-1] = text
			rows = append(rows, row)
		}
	}
	return Table(&p.Builder, align, header, rows)
}

// grouped collects the rows in the order of the walk. A pass before or behind that of the first divergence is one group;
// where nothing diverges a layer is one over all passes.
func grouped(r *compare.Result) []*group {
	diverged, passes := -1, false
	if d := r.Divergence; d != nil {
		diverged = d.Row.Pass
	}
	for i := range r.Rows {
		passes = passes || r.Rows[i].Pass > 0
	}
	var all []*group
	layers := map[int]bool{} // passes in which a layer was seen
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Derived { // decides nothing
			continue
		}
		g := &group{part: "all", pass: -1}
		switch {
		case diverged >= 0 && row.Pass != diverged:
			g.part, g.first = "pass", row.Pass
		case row.Layer >= 0:
			g.part, g.first, layers[row.Pass] = "layer", row.Layer, true
		case row.Behind || layers[row.Pass]:
			g.part = "output"
		default:
			g.part = "input"
		}
		if g.last = g.first; diverged >= 0 && passes && g.part != "pass" {
			g.pass = diverged
		}
		all = put(all, g)
		all[find(all, g)].add(row)
	}
	if len(all) == 1 && r.Coverage.Layers == 0 {
		all[0].part = "all"
	}
	return merged(all)
}

// find is the place of a group in a list.
func find(all []*group, g *group) int {
	for i, have := range all {
		if have.part == g.part && have.pass == g.pass && have.first == g.first {
			return i
		}
	}
	return -1
}

func put(all []*group, g *group) []*group {
	if find(all, g) >= 0 {
		return all
	}
	g.certified, g.remarks = map[isolate.Outcome]int{}, map[string]int{}
	return append(all, g)
}

// add takes a row in.
func (g *group) add(row *compare.Row) {
	g.rows++
	if m := row.Metrics; m == nil || m.Unequal > 0 || m.NonFinite > 0 || m.RelL2 > 0 {
		g.unequal++
	}
	switch {
	case row.Excused == compare.Accepted:
		g.remarks[string(compare.Accepted)]++
	case row.Excused == compare.Passed:
		g.remarks[string(compare.Passed)]++
	case row.Verdict == compare.Mismatch && row.Allowed != "":
		g.remarks["allowed to differ"]++
	case row.Verdict == compare.Mismatch && !takesPart(row):
		g.remarks["expected to differ"]++
	case row.Verdict == compare.Mismatch:
		g.mismatches++
	case row.Verdict == compare.Unverified:
		g.unjudged++
	case row.Verdict == compare.Match && !row.Tested && row.Facts.Standing != compare.StandingGiven:
		g.remarks["untested"]++
	}
	for _, n := range row.Notes {
		if n.Kind == compare.Drift {
			g.remarks["drift"]++
		}
	}
	if row.Facts.Standing == compare.StandingLayout {
		g.remarks["layout"]++
	}
	if c := row.Isolated; c != nil {
		g.certified[c.Outcome]++
		if c.Outcome == isolate.Unidentified {
			g.remarks[string(isolate.Unidentified)]++
		}
	}
	g.lead(row)
}

// lead keeps the row that the line shows.
func (g *group) lead(row *compare.Row) {
	if row == nil {
		return
	}
	wrong := func(r *compare.Row) bool { return r.Verdict == compare.Mismatch && takesPart(r) }
	switch {
	case g.worst == nil:
	case wrong(g.worst):
		return
	case wrong(row):
	case nearness(row) <= nearness(g.worst):
		return
	}
	g.worst = row
}

// nearness is how near a row is to its limit, the error itself where it has none; −1 where nothing was measured.
func nearness(r *compare.Row) float64 {
	if r.Metrics == nil || math.IsNaN(float64(r.Metrics.RelL2)) {
		return -1
	}
	if r.Gate != nil && len(r.Gate.Checks) > 0 && r.Gate.Checks[0].Limit > 0 {
		return float64(r.Gate.Checks[0].Error / r.Gate.Checks[0].Limit)
	}
	return float64(r.Metrics.RelL2)
}

// merged draws runs of layers and passes together: those in which every entry is equal to the bit, always; others that have
// the same remarks where there are too many for the page, and any where that is not enough.
func merged(all []*group) []*group {
	exact := func(a, b *group) bool { return a.plain() && b.plain() && a.equal() && b.equal() }
	alike := func(a, b *group) bool { return a.plain() && b.plain() }
	right := func(a, b *group) bool { return a.mismatches == 0 && b.mismatches == 0 }
	wrong := func(a, b *group) bool { return (a.mismatches == 0) == (b.mismatches == 0) }
	whatever := func(_, _ *group) bool { return true }
	for i, same := range []func(a, b *group) bool{exact, alike, right, wrong, whatever} {
		if i > 0 && linesOf(all) <= maxGroups {
			break
		}
		all = runs(all, same)
	}
	return all
}

// linesOf is how many lines groups take: one, and one more where there is something to remark.
func linesOf(all []*group) int {
	n := len(all)
	for _, g := range all {
		if g.remarked(false) != "" {
			n++
		}
	}
	return n
}

// runs draws neighbours of a kind together that are the same.
func runs(all []*group, same func(a, b *group) bool) []*group {
	var out []*group
	for _, g := range all {
		n := len(out)
		if n == 0 || out[n-1].part != g.part || out[n-1].pass != g.pass || g.part != "layer" && g.part != "pass" || !same(out[n-1], g) {
			out = append(out, g)
			continue
		}
		into := out[n-1]
		into.last = g.last
		into.rows += g.rows
		into.mismatches += g.mismatches
		into.unequal += g.unequal
		into.unjudged += g.unjudged
		for k, v := range g.certified {
			into.certified[k] += v
		}
		for k, v := range g.remarks {
			into.remarks[k] += v
		}
		into.lead(g.worst)
	}
	return out
}

// plain groups have nothing but matches to tell of.
func (g *group) plain() bool { return g.mismatches == 0 && g.remarked(false) == "" }

// equal reports whether nothing differs.
func (g *group) equal() bool { return g.unequal == 0 }

// where names the part of the model.
func (g *group) where() string {
	text := g.part
	if g.part == "layer" || g.part == "pass" {
		text = fmt.Sprintf("%s %d", g.part, g.first)
		if g.last > g.first {
			text = fmt.Sprintf("%s %d-%d", either(g.part == "layer", "layers", "passes"), g.first, g.last)
		}
	}
	if g.pass >= 0 {
		text = fmt.Sprintf("pass %d %s", g.pass, text)
	}
	return text
}

// at is the entry that the line shows, without what the line says already; in a line of several layers with the number of its own.
func (g *group) at() string {
	if g.mismatches == 0 && g.equal() {
		return "all equal"
	}
	if g.worst == nil {
		return "-"
	}
	name := g.worst.Key()
	if g.pass >= 0 {
		name = capturedName(g.worst)
	}
	if g.part == "layer" {
		name = strings.Replace(name, order.InLayer(g.worst.Layer, "").String(), "", 1)
		if g.first < g.last {
			name += fmt.Sprintf(" (%d)", g.worst.Layer)
		}
	}
	return name
}

// capturedName is a key without its pass.
func capturedName(r *compare.Row) string {
	name := r.Name
	if r.Firing > 0 {
		name += "#" + strconv.Itoa(r.Firing)
	}
	return name
}

// outcome is the verdict of the whole line.
func (p *printer) outcome(g *group) string {
	switch {
	case g.mismatches > 0:
		return paint(p.style.bad, string(compare.Mismatch))
	case g.unjudged > 0:
		return paint(p.style.bad, string(compare.Unverified))
	case g.remarks[string(compare.Accepted)] > 0:
		return paint(p.style.quiet, "ACCEPTED")
	case g.remarks[string(compare.Passed)] > 0:
		return paint(p.style.quiet, "INHERITED")
	}
	return paint(p.style.good, string(compare.Match))
}

// outcomes counts certificates.
func (g *group) outcomes() string {
	var parts []string
	for _, o := range []isolate.Outcome{isolate.Exact, isolate.Rounding, isolate.Unidentified, isolate.NotCertified, isolate.OtherLayout, isolate.Bug} {
		if n := g.certified[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(parts, ", ")
}

// remarked counts what is no plain match; certified: beside a column of certificates.
func (g *group) remarked(certified bool) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if g.mismatches > 1 && !certified { // else BUG is counted already
		add(g.mismatches, "mismatches")
	}
	add(g.unjudged, string(compare.Unverified))
	for _, what := range []string{string(isolate.Unidentified), "drift", "layout", "untested", "accepted", "inherited", "allowed to differ", "expected to differ"} {
		add(g.remarks[what], what)
	}
	return strings.Join(parts, ", ")
}

// errorOf are the accumulated error of a row and its limit.
func errorOf(r *compare.Row) (failed, limit string) {
	failed, limit = "-", "-"
	if r == nil {
		return failed, limit
	}
	if m := r.Metrics; m != nil && (m.NonFinite > 0 || !math.IsNaN(float64(m.RelL2))) {
		failed = brief(float64(relL2(m)))
	}
	if r.Gate != nil && len(r.Gate.Checks) > 0 {
		limit = brief(float64(r.Gate.Checks[0].Limit))
	}
	return failed, limit
}

// relL2 is the error of a whole tensor: NaN where an element is NaN or infinite on one side alone. The metric leaves such elements
// out, and what is left says nothing of a tensor that is not finite.
func relL2(m *measure.Metrics) measure.Number {
	if m.NonFinite > 0 {
		return measure.Number(math.NaN())
	}
	return m.RelL2
}

// notFinite reports whether a row has elements that are NaN or infinite on one side alone.
func notFinite(r *compare.Row) bool { return r.Metrics != nil && r.Metrics.NonFinite > 0 }

// brief is a number with two digits.
func brief(x float64) string { return fmt.Sprintf("%.2g", x) }
