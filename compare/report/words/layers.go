package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// The parts of a map outside of the layers.
const BeforeLayers, AfterLayers = "before the layers", "after the layers"

// maxGroups is how many lines the layers of one summary may take: more are drawn together, alike or not.
const maxGroups = 12

// group is one line of the summary: what the rows of a part of the model come to.
type group struct {
	part       string // "input", "layer", "output", "pass" or "all"
	pass       int    // −1 for all passes
	first      int    // of a run of layers or passes
	last       int
	rows       []*compare.Row
	mismatches int
	unequal    int // rows with a difference between the two sides in at least one bit
	unjudged   int
	worst      *compare.Row // counts of outcomes other than a plain match
	certified  map[isolate.Outcome]int
	remarks    map[string]int // what is no plain match, counted
}

// layers writes a line a layer, and below it the entries around the first divergence.
func layers(doc *Document, r *compare.Result) {
	if len(r.Rows) == 0 {
		return
	}
	doc.blank()
	columns := []Column{{}, {Title: "part"}, {Title: "entries", Right: true}, {Title: "error", Right: true}, {Title: "limit", Right: true}, {Title: "worst entry"}}
	if r.Alone {
		columns = append(columns[:3], Column{Title: "on their own inputs"})
	}
	var rows [][]Cell
	for _, g := range grouped(r) {
		cells := append([]Cell{outcome(g)}, plainCells(g.where(), strconv.Itoa(len(g.rows)))...)
		if r.Alone {
			cells = append(cells, plainCells(g.outcomes())...)
		} else {
			failed, limit := ErrorOf(g.worst)
			if g.mismatches == 0 && g.equal() {
				limit = "-"
			}
			cells = append(cells, plainCells(failed, limit, g.at())...)
		}
		rows = append(rows, cells)
		if text := g.remarked(r.Alone); text != "" {
			row := make([]Cell, len(cells))
			row[len(row)-1].Text = text
			rows = append(rows, row)
		}
	}
	doc.table(columns, rows)
	around(doc, r)
}

// grouped collects the rows in the order of the walk. A pass before or after the pass of the first divergence is one group. Without a
// divergence, a layer is one group over all passes.
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
		g := &group{part: "all", pass: -1, certified: map[isolate.Outcome]int{}, remarks: map[string]int{}}
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
		at := slices.IndexFunc(all, func(have *group) bool { return have.part == g.part && have.pass == g.pass && have.first == g.first })
		if at < 0 {
			at = len(all)
			all = append(all, g)
		}
		all[at].add(row)
	}
	if len(all) == 1 && r.Coverage.Layers == 0 {
		all[0].part = "all"
	}
	return merged(all)
}

// add takes a row in.
func (g *group) add(row *compare.Row) {
	g.rows = append(g.rows, row)
	if m := row.Metrics; m == nil || m.Unequal > 0 || m.NonFinite > 0 || m.RelL2 > 0 {
		g.unequal++
	}
	switch {
	case row.Excused == compare.Accepted:
		g.remarks[string(compare.Accepted)]++
	case row.Excused == compare.Passed:
		g.remarks[string(compare.Passed)]++
	case row.Verdict == compare.Mismatch && row.Allowed != "":
		g.remarks[allowedToDiffer]++
	case row.Verdict == compare.Mismatch && !TakesPart(row):
		g.remarks[expectedToDiffer]++
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
	wrong := func(r *compare.Row) bool { return r.Verdict == compare.Mismatch && TakesPart(r) }
	switch {
	case g.worst == nil:
	case wrong(g.worst):
		return
	case wrong(row):
	case Nearness(row) <= Nearness(g.worst):
		return
	}
	g.worst = row
}

// Nearness is how near a row is to its limit, the error itself where it has none; −1 where nothing was measured.
func Nearness(r *compare.Row) float64 {
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

// linesOf returns the number of lines that groups take: one per group, plus one per group with a remark.
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
		out[n-1].last = g.last
		for _, row := range g.rows {
			out[n-1].add(row)
		}
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
			text = fmt.Sprintf("%s %d-%d", Either(g.part == "layer", "layers", "passes"), g.first, g.last)
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
		name = CapturedName(g.worst)
	}
	if g.part == "layer" {
		name = strings.Replace(name, order.InLayer(g.worst.Layer, "").String(), "", 1)
		if g.first < g.last {
			name += fmt.Sprintf(" (%d)", g.worst.Layer)
		}
	}
	return name
}

// CapturedName is a key without its pass.
func CapturedName(r *compare.Row) string { return capture.Key(0, r.Name, r.Firing) }

// outcome is the verdict of the whole line.
func outcome(g *group) Cell {
	switch {
	case g.mismatches > 0:
		return Cell{Text: string(compare.Mismatch), Tone: Bad}
	case g.unjudged > 0:
		return Cell{Text: string(compare.Unverified), Tone: Bad}
	case g.remarks[string(compare.Accepted)] > 0:
		return Cell{Text: "ACCEPTED", Tone: Quiet}
	case g.remarks[string(compare.Passed)] > 0:
		return Cell{Text: "INHERITED", Tone: Quiet}
	}
	return Cell{Text: string(compare.Match), Tone: Good}
}

// outcomes counts certificates.
func (g *group) outcomes() string {
	var all []number
	for _, o := range []isolate.Outcome{isolate.Exact, isolate.Rounding, isolate.Unidentified, isolate.NotCertified, isolate.OtherLayout, isolate.Bug} {
		all = append(all, number{int64(g.certified[o]), string(o)})
	}
	return strings.TrimPrefix(counts(", ", all...), ", ")
}

// remarked counts the outcomes other than a plain match. certified: the table has a column of certificates, which already has the bugs and the
// unidentified entries.
func (g *group) remarked(certified bool) string {
	var all []number
	if g.mismatches > 1 && !certified { // else BUG is counted already
		all = append(all, number{int64(g.mismatches), "mismatches"})
	}
	all = append(all, number{int64(g.unjudged), string(compare.Unverified)})
	for _, what := range []string{string(isolate.Unidentified), "drift", "layout", "untested", "accepted", "inherited", allowedToDiffer, expectedToDiffer} {
		if what != string(isolate.Unidentified) || !certified {
			all = append(all, number{int64(g.remarks[what]), what})
		}
	}
	return strings.TrimPrefix(counts(", ", all...), ", ")
}

// before and after are how many entries are listed around the first divergence.
const before, after = 3, 3

// around lists the entries about the first divergence.
func around(doc *Document, r *compare.Result) {
	d := r.Divergence
	if d == nil {
		return
	}
	at := -1
	for i := range r.Rows {
		if r.Rows[i].Key() == d.Row.Key() {
			at = i
			break
		}
	}
	if at < 0 {
		return
	}
	columns := []Column{{}, {Title: "entry"}, {Title: "error", Right: true}, {Title: "limit", Right: true}, {Title: ownInputs}}
	if r.Alone {
		columns = []Column{{}, {Title: "entry"}, {Title: ownInputs}}
	} else if r.Isolation == nil {
		columns = columns[:4]
	}
	var rows [][]Cell
	for i := max(at-before, 0); i < min(at+after+1, len(r.Rows)); i++ {
		row := &r.Rows[i]
		verdict := Cell{Text: string(row.Verdict)}
		switch {
		case row.Verdict == compare.Mismatch && TakesPart(row):
			verdict.Tone = Bad
		case row.Verdict == compare.Match:
			verdict.Tone = Good
		}
		cells := []Cell{verdict, {Text: row.Key()}}
		if !r.Alone {
			failed, limit := ErrorOf(row)
			cells = append(cells, plainCells(failed, limit)...)
		}
		rows = append(rows, append(cells, Cell{Text: alone(row)})[:len(columns)])
	}
	doc.blank()
	doc.table(columns, rows)
}

// alone is the outcome of an entry on its own inputs; "-" for an entry that was not recomputed.
func alone(r *compare.Row) string {
	if r.Isolated == nil {
		return "-"
	}
	return string(r.Isolated.Outcome)
}
