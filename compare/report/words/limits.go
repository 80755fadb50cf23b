package words

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/amount"
)

// legend says what the columns are.
func legend(doc *Document, r *compare.Result) {
	if r.Alone {
		return
	}
	var from []string
	for i := range r.Rows {
		g := r.Rows[i].Gate
		if g == nil || len(g.Checks) == 0 || r.Rows[i].Derived {
			continue
		}
		// The column shows the smaller limits before the layers.
		if source := strings.TrimSuffix(gate.Source(g.From), gate.BeforeLayers); !slices.Contains(from, source) {
			from = append(from, source)
		}
	}
	if from == nil {
		return
	}
	if n := len(from); n > maxShort {
		from = append(from[:maxShort], More(n-maxShort))
	}
	builtIn := slices.ContainsFunc(from, func(source string) bool { return strings.HasPrefix(source, gate.BuiltIn) })
	doc.Line("(error: relative L2; limit: %s%s)", strings.Join(from, "; "), Either(builtIn, "; see docs/verdict.md", ""))
}

// limits names the limits of the rows, and the single tolerance with which every row would match. If a mismatch has a cause other than its
// limit, no tolerance would help, and limits says so.
func limits(doc *Document, r *compare.Result) {
	var by groups[measure.Number] // by their source
	var worst, loudest, hopeless *compare.Row
	judged := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if hopeless == nil && row.Verdict == compare.Mismatch && row.Decided != compare.ByLimit && TakesPart(row) {
			hopeless = row
		}
		if row.Gate == nil || len(row.Gate.Checks) == 0 || row.Derived {
			continue
		}
		judged++
		by.add(row.Gate.From, row.Gate.Checks[0].Limit)
		if worst == nil || row.Gate.Tolerance > worst.Gate.Tolerance {
			worst = row
		}
		if row.Gate.Noise > 0 && (loudest == nil || row.Gate.Noise > loudest.Gate.Noise) {
			loudest = row
		}
	}
	if worst == nil {
		return
	}
	var texts []string
	for _, from := range by.keys {
		text := rough(slices.Min(by.of[from]))
		if most := slices.Max(by.of[from]); most > slices.Min(by.of[from]) {
			text += " to " + rough(most)
		}
		texts = append(texts, text+" ("+gate.Source(from)+")")
	}
	doc.Line("limits of relative L2: %s", strings.Join(texts, ", "))
	if hopeless == nil && math.IsInf(float64(worst.Gate.Tolerance), 0) {
		hopeless = worst
	}
	if hopeless != nil {
		doc.Line("not a tolerance problem: no limit passes %s", hopeless.Key())
		return
	}
	where := "everywhere"
	if r.Stopped {
		where = "in the " + count(judged, "entry", "entries") + " compared so far"
	}
	text := fmt.Sprintf("tightest tolerance that passes %s: %s, for %s", where, rough(worst.Gate.Tolerance), worst.Key())
	if loudest != nil {
		text += fmt.Sprintf("; %s x the noise floor, for %s", rough(loudest.Gate.Noise), loudest.Key())
	}
	doc.Line("%s", text)
}

// TakesPart reports whether a mismatch fails the comparison.
func TakesPart(r *compare.Row) bool {
	return !r.Derived && r.Allowed == "" && !slices.ContainsFunc(r.Notes, func(n compare.Note) bool { return n.Kind == compare.Expected })
}

// allowances writes the allow-list, whether its lines were needed or not.
func allowances(doc *Document, r *compare.Result) {
	if len(r.Allowed) == 0 {
		return
	}
	doc.blank()
	for _, a := range r.Allowed {
		doc.Line("allowed: %s", allowance(a))
	}
}

// baseline writes the known divergences, each with its reason and its last day, and the divergences that no longer hold.
func baseline(doc *Document, r *compare.Result) {
	if r.Baseline == nil {
		return
	}
	holding := slices.DeleteFunc(slices.Clone(r.Baseline.Lines), compare.KnownLine.Fails)
	n := len(holding)
	for i, l := range holding {
		doc.only(Either(i >= maxListed && n > maxListed+1, Whole, Any), func() {
			doc.Line("known: %s %s, until %s, because: %s (%s)", l.Key, l.Class, l.Until, l.Reason, becameOf(l))
			if l.Note != "" {
				doc.sub("%s", l.Note)
			}
		})
	}
	if n > maxListed+1 {
		doc.only(Brief, func() { doc.sub("and %d more of %s (--verbose lists them)", n-maxListed, r.Baseline.File) })
	}
	for _, l := range r.Baseline.Failing() {
		doc.say(Bad, "BASELINE", "%s %s (%s): %s; %s (accepted until %s, because: %s)", l.Key, l.Class, l.State, l.Why, mend(l, r.Baseline.File), l.Until, l.Reason)
	}
}

// becameOf is what became of a known divergence, in a few words.
func becameOf(l compare.KnownLine) string {
	if l.State != compare.KnownAccepted {
		return fmt.Sprintf("%s: %s", l.State, l.Why)
	}
	if math.IsNaN(float64(l.Now)) || math.IsNaN(float64(l.Error)) {
		return string(l.State)
	}
	return fmt.Sprintf("accepted: error %s, was %s", rough(l.Now), rough(l.Error))
}

// Known is the state of a known divergence.
func Known(l compare.KnownLine) string {
	return fmt.Sprintf("%s, until %s: %s", l.State, l.Until, l.Reason)
}

// mend says what to do about a line that no longer holds.
func mend(l compare.KnownLine, file string) string {
	if l.State == compare.KnownGone {
		return "remove it from " + file
	}
	return "correct it, or accept it again with tracediff accept"
}

// allowance is a line of the allow-list, and what it accepted.
func allowance(a compare.Allowed) string {
	where := fmt.Sprintf("%q", a.Tensors)
	if a.Passes != "" {
		where += " in passes " + a.Passes
	}
	for _, c := range a.Classes {
		where += " " + string(c)
	}
	use := "no compared entry needs it"
	if n := len(a.Keys); n > 0 {
		use = count(n, "mismatch", "mismatches") + ", the first is " + a.Keys[0]
	}
	return fmt.Sprintf("%s, because: %s (%s)", where, a.Reason, use)
}

// others names the mismatches with a wrong operation if there are several, and the entries that were allowed to differ.
func others(doc *Document, r *compare.Result) {
	if n := len(r.Roots); n > 1 {
		doc.Line("wrong on their own inputs: %d of %s: %s", n, count(r.Mismatches, "mismatch", "mismatches"), amount.Some(r.Roots, maxShort))
	}
	for _, a := range r.Allowed {
		doc.Line("allowed: %s", allowance(a))
	}
	recomputed(doc, r)
	baseline(doc, r)
}

// recomputed names the derived entries that differ. A derived entry was recomputed by the side with the capture and does not decide the
// verdict.
func recomputed(doc *Document, r *compare.Result) {
	var keys []string
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Derived && row.Verdict == compare.Mismatch {
			keys = append(keys, row.Key())
		}
	}
	if n := len(keys); n > 0 {
		text := strings.Join(keys[:min(n, 2)], ", ")
		if n > 2 { // one name, so that it stays one line
			text = keys[0] + " and " + More(n-1)
		}
		doc.Line("derived: %s %s and %s nothing: %s", count(n, "entry", "entries"), Either(n == 1, "differs", "differ"), Either(n == 1, "decides", "decide"), text)
	}
}
