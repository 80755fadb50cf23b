package words

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
)

// Excuse says why a row decides nothing; empty for a row that does.
func Excuse(r *compare.Row) string {
	switch {
	case r.Derived:
		return "recomputed by the capturing side: " + string(r.Verdict)
	case r.Excused != "":
		return string(r.Excused) + ": " + r.Allowed
	case r.Allowed != "":
		return "allowed: " + r.Allowed
	case r.Verdict == compare.Unverified:
		return "not judged: " + r.Detail
	}
	return ""
}

// Doubt says why a row was not decided on its own inputs; empty where it was.
func Doubt(r *compare.Row) string {
	if z := r.Isolated; z == nil || z.Outcome != isolate.Unidentified {
		return ""
	}
	return string(isolate.Unidentified) + ": " + r.NotIsolated
}

// Row are the numbers and the reasons of a mismatch; for the first divergence with the next step.
func Row(res *compare.Result, r *compare.Row) []Field {
	doc := &Document{}
	say := func(label, format string, args ...any) { doc.say(Plain, label, format, args...) }
	if r.Gate != nil {
		for _, c := range r.Gate.Checks {
			say(c.What, "error %s, limit %s (%s)", Either(notFinite(r), "NaN", rough(c.Error)), rough(c.Limit), gate.Source(r.Gate.From))
		}
	}
	if r.Stats != nil {
		say("values", "%s", statsText(*r.Stats))
	}
	if r.Isolated != nil && r.Isolated.Finding != nil {
		say("bug", "%s", r.Isolated.Finding.Text())
	}
	if r.Isolated != nil {
		say(ownInputs, "%s", r.Isolated.Outcome)
	}
	if r.Blame != "" {
		say("blame", "%s", r.Blame)
	}
	if d := res.Divergence; d != nil && d.Row.Key() == r.Key() {
		if d.Fault != nil && d.Fault.Finding != nil {
			say("bug", "%s", bugText(d))
		}
		doc.Line("decided by %s", res.Decided)
		for _, h := range d.Hints {
			say("hint", "%s", h)
		}
	}
	return doc.last().Fields
}

// Remarked are the remarks on a row, in full.
func Remarked(r *compare.Row) (all []string) {
	if c := r.Isolated; c != nil && c.Arithmetic != "" && c.Arithmetic != "strict" {
		all = append(all, otherRounding+noBug+": "+c.Arithmetic)
	}
	for _, n := range r.Notes {
		all = append(all, string(n.Kind)+": "+n.Text)
	}
	if r.Allowed != "" {
		all = append(all, allowedToDiffer+": "+r.Allowed)
	}
	if r.Gap != "" {
		all = append(all, "not drift: "+r.Gap)
	}
	if r.Derived {
		all = append(all, "derived: the capturing side recomputed it; it decides nothing")
	}
	for i := range all {
		all[i] = Clean(all[i])
	}
	return all
}

// Curve describes the chart of the errors of all rows in words, for readers who cannot see the chart.
func Curve(res *compare.Result) string {
	equal := countOf(res.Rows, func(r *compare.Row) bool { return ErrorAt(r) == 0 })
	past := countOf(res.Rows, func(r *compare.Row) bool { return r.Verdict == compare.Mismatch && TakesPart(r) })
	derived := countOf(res.Rows, func(r *compare.Row) bool { return r.Derived })
	var worst *compare.Row
	for i := range res.Rows {
		if r := &res.Rows[i]; worst == nil || Nearness(r) > Nearness(worst) {
			worst = r
		}
	}
	what := "Nearest to its limit:"
	if d := res.Divergence; d != nil {
		what, worst = "First mismatch:", &d.Row
	}
	entries := count(len(res.Rows)-derived, "entry", "entries")
	if derived > 0 { // the verdict counts them apart
		entries += fmt.Sprintf(" and %d derived", derived)
	}
	e, l := ErrorOf(worst)
	return Clean(fmt.Sprintf("Relative L2 error of %s in the order of the walk: %d without error, %s. %s %s, error %s, limit %s.",
		entries, equal, count(past, "mismatch", "mismatches"), what, worst.Key(), e, l))
}

// ErrorAt is the relative error of a row, NaN where nothing was measured.
func ErrorAt(r *compare.Row) float64 {
	if r.Metrics == nil {
		return math.NaN()
	}
	return float64(RelL2(r.Metrics))
}

// RowsLeft says that rows are not on a page; wrong of them are no plain matches.
func RowsLeft(rows, wrong int) string {
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf(" %s not in this file, %s; the JSON report has them.", count(rows, "row is", "rows are"),
		Either(wrong == 0, "and match", fmt.Sprintf("%d of them not a plain MATCH", wrong)))
}

// PassesLeft is the sentence about n passes that are not drawn. If the passes of the page were chosen, the sentence says how.
func PassesLeft(n int, chosen bool) string {
	if n == 0 {
		return ""
	}
	why := Either(chosen, ": this page has the first pass, and the first pass with a mismatch. The JSON report has all.", ".")
	return count(n, "pass is", "passes are") + " not drawn" + why
}
