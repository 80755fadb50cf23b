package compare

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Decider is which of the two verdicts made a row a mismatch.
type Decider string

// The deciders. A wider limit would change only the outcomes decided by the limit.
const (
	ByLimit     Decider = "limit"     // the accumulated error is past its limit; isolation does not accuse
	ByIsolation Decider = "isolation" // wrong on its own inputs, or computed from something wrong; the comparison finds nothing
	ByBoth      Decider = "both"      // wrong on its own inputs, and the comparison finds it too
	// ByEquality: a property without tolerance differs: a shape, a dtype, the positions of NaN, the masked keys,
	// integers. Isolation finds no bug.
	ByEquality Decider = "equality"
)

// seenWords say what differs.
var seenWords = map[Seen]string{
	SeenShape: "the shapes differ", SeenNonFinite: "NaN or infinity on one side only", SeenKeys: "the two sides see different keys",
	SeenNumbers: "integers or booleans differ", SeenDType: "the dtypes differ", SeenWider: "the dtypes differ",
	SeenPast: "the accumulated error is over its limit",
}

// restsOn says in words which of the two verdicts the outcome rests on.
func (r *Result) restsOn() string {
	switch {
	case r.Divergence != nil:
		return r.decidedBy(&r.Divergence.Row)
	case len(r.Missing) > 0:
		return "missing entries: " + r.noneWrong()
	case r.unmetExpectation():
		return "an entry that was expected to differ and does not"
	case len(r.Baseline.Failing()) > 0:
		l := r.Baseline.Failing()[0]
		return "the baseline: " + l.Key + ": " + l.Why
	case r.ExitCode() != 0:
		return "the coverage: " + r.noneWrong() + ", but that is not enough"
	}
	if b := r.Baseline; b != nil && b.Accepted > 0 {
		return fmt.Sprintf("the baseline for %s; for all others, %s", amount.Count(b.Accepted, "known divergence", "known divergences"), r.decidedWell(b.Accepted))
	}
	return r.decidedWell(0)
}

// decidedWell returns the sentence about a comparison without a failing row; accepted is the number of known
// divergences.
func (r *Result) decidedWell(accepted int) string {
	s := r.Isolation
	switch {
	case r.Alone:
		return "isolation only: there is no reference"
	case s == nil || s.Exact+s.Rounding+s.Layout+s.Bugs == 0:
		return "the comparison only: nothing was certified"
	}
	text := "both verdicts: all errors within limits, "
	if s.Drift > 0 {
		text = fmt.Sprintf("isolation for %s over the limit: every operation from the token ids to there is right; both verdicts for all others: all errors within limits, ",
			amount.Count(s.Drift, "entry", "entries"))
	}
	if s.Layout > 0 {
		text = "both verdicts: all errors within limits except other layouts, which cancel, "
	}
	if n, all := s.Exact+s.Rounding+s.Layout, s.Certified+s.NotIsolated; n+min(accepted, s.Bugs) < all {
		return text + fmt.Sprintf("and %d of %s right on their own inputs, the others are not certified", n, amount.Count(all-min(accepted, s.Bugs), "entry is", "entries are"))
	}
	return text + "and every operation verified"
}

// noneWrong says that nothing is accused, and what is not known.
func (r *Result) noneWrong() string {
	if s := r.Isolation; s != nil && s.Unidentified > 0 {
		return "nothing that was compared was found wrong, but the arithmetic of " + amount.Count(s.Unidentified, "entry", "entries") + " is not known"
	}
	return "nothing that was compared is wrong"
}

// decidedBy is the sentence on a mismatch.
func (r *Result) decidedBy(row *Row) string {
	wrong := "the operation is wrong on its own inputs"
	if row.Isolated == nil || row.Isolated.Outcome != isolate.Bug {
		wrong = "an entry that it was computed from, and that was not compared, is wrong"
	}
	differs := seenWords[row.Facts.Seen]
	if row.Name == order.PositionIDs && row.Facts.Seen == SeenNumbers {
		differs = "the positions differ"
	}
	switch row.Decided {
	case ByIsolation:
		switch {
		case r.Alone:
			return "isolation: " + wrong
		case !row.Gate.Tolerant():
			return "isolation: " + wrong + "; the comparison finds nothing"
		}
		return "isolation: " + wrong + "; the accumulated error is within its limit"
	case ByBoth:
		return "both verdicts: " + wrong + ", and " + differs
	case ByEquality:
		if r.Alone {
			return "the order, which has another value there; nothing was computed"
		}
		return "the comparison: " + differs + ", for which there is no tolerance; " + r.other(row)
	}
	return "the accumulated error: it is over its limit; " + r.other(row)
}

// other describes the result of isolation for a row without a BUG.
func (r *Result) other(row *Row) string {
	switch c := row.Isolated; {
	case c != nil && c.Good():
		return "the operation is right on its own inputs"
	case c != nil && c.Outcome == isolate.Unidentified:
		return "isolation neither finds the operation wrong nor verifies it"
	case r.Isolation == nil:
		return "nothing was certified"
	}
	return "isolation does not decide it"
}

// NothingTested is said of a comparison of entries that test nothing.
const NothingTested = "nothing was tested"

// AskedFor begins a note of a result about what the scope that was asked for leaves out.
const AskedFor = "as asked for, "

// incomplete collects the reasons for which a comparison without a mismatch is still no success.
func (a *account) incomplete() {
	reasons := &a.res.Incomplete
	asked, unasked := a.plan.Narrowings()
	for _, n := range asked {
		a.res.Notes = append(a.res.Notes, AskedFor+n)
	}
	*reasons = append(*reasons, unasked...)
	for side, s := range a.plan.Each() {
		if why := s.Trace.Unfinished(); why != "" {
			*reasons = append(*reasons, fmt.Sprintf("%s is not complete: %s", a.plan.Names[side].Trace, why))
		}
		for _, n := range s.Trace.Notes() {
			a.res.Notes = append(a.res.Notes, a.plan.Names[side].Trace+": "+n)
		}
	}
	*reasons = append(*reasons, a.o.Flaws...)
	a.res.Notes = append(a.res.Notes, a.o.Remarks...)
	if _, assumed := a.o.assumed(a.plan.Mode, local, 0); assumed {
		a.res.Notes = append(a.res.Notes, a.plan.Names[local].Trace+" has no "+order.PositionIDs+": its tokens count as positions 0, 1, 2 and so on, pass by pass")
	}
	a.onlyOneSide()
	if n := len(a.res.Unverified); n > 0 {
		*reasons = append(*reasons, fmt.Sprintf("%s not judged, the first is %s: the walk has not reproduced these operations of transformers, so a difference does not show a bug",
			amount.Count(n, "entry was", "entries were"), a.res.Unverified[0]))
	}
	a.required()
	if a.res.Stopped {
		return // at a divergence: the entries after it need not be compared
	}
	a.reach()
	if n := len(a.decided.nanBoth); n > 0 {
		*reasons = append(*reasons, fmt.Sprintf("NaN or overflow%s in %s, the first is %s: nothing is tested there", a.plan.Names.Both(), amount.Of(n, "tensor"), a.decided.nanBoth[0]))
	}
	if n := len(a.res.Untested); n > 0 {
		*reasons = append(*reasons, fmt.Sprintf("%s untested, the first is %s: %s; capture what it is computed from, or take a prompt that makes it vary", amount.Count(n, "entry is", "entries are"), a.res.Untested[0], a.decided.untested))
	}
	if a.plan.Mode == sides.Alone {
		a.uncertified()
	}
	switch c := a.res.Coverage; {
	case c.Compared == 0:
		*reasons = append(*reasons, "no entry was compared")
	case c.Tested == 0 && !slices.ContainsFunc(a.res.Rows, func(r Row) bool { return r.Facts.Policy.Printed }):
		*reasons = append(*reasons, NothingTested+": the entries compared are the token ids, or constant, zero or empty in "+a.plan.Names[reference].Side)
	}
}

// onlyOneSide reports the passes that one side does not have.
func (a *account) onlyOneSide() {
	less, more := local, reference
	if a.plan.Sides[local].Passes > a.plan.Sides[reference].Passes {
		less, more = reference, local
	}
	n := 0
	for pass := a.plan.Sides[less].Passes; pass < a.plan.Sides[more].Passes; pass++ {
		if a.plan.Scopes.CoverPass(pass) {
			n++
		}
	}
	if n > 0 {
		a.res.Incomplete = append(a.res.Incomplete, fmt.Sprintf("pass counts differ: %s has %d more, from pass %d on", a.plan.Names[more].Trace, n, a.plan.Sides[less].Passes))
		if len(a.res.Rows) > 0 { // else nothing is compared with them either
			a.res.CommonPasses = capture.RangesOf(a.plan.Common()).String()
		}
	}
}

// uncertified reports the entries of a single trace without a certificate.
func (a *account) uncertified() {
	n, first := 0, ""
	for i := range a.res.Rows {
		if r := &a.res.Rows[i]; r.NotIsolated != "" && !r.Derived {
			if n == 0 {
				first = fmt.Sprintf("%s: %s", r.Key(), r.NotIsolated)
			}
			n++
		}
	}
	if n > 0 {
		a.res.Incomplete = append(a.res.Incomplete, fmt.Sprintf("%s not certified, the first is %s", amount.Count(n, "entry is", "entries are"), first))
	}
}

// weaker notes that nothing was certified, so a match only means an error within its limit. If certificates were
// demanded, their absence makes the comparison incomplete.
func (a *account) weaker() {
	why := a.o.NotIsolated
	if s := a.res.Isolation; s != nil {
		if s.Certified > s.Unverified+s.Unidentified {
			return
		}
		why = whyNone(a.res.Rows)
	}
	if why == "" || a.plan.Mode == sides.AB || a.o.Certifying == Declined {
		return
	}
	if a.res.Uncertified = why; a.o.Certifying == Demanded && !a.res.Stopped {
		a.res.Incomplete = append(a.res.Incomplete, "nothing was certified: "+why)
	}
}

// required reports the entries without a certificate of EXACT or ROUNDING, if the options require one for each
// entry. Entries certified as BUG are already mismatches, and allow-listed entries do not count.
func (a *account) required() {
	if a.o.Certifying != Required || a.plan.Mode == sides.AB || a.plan.Mode == sides.Alone { // a single trace always requires certificates
		return
	}
	n, first := 0, ""
	for i := range a.res.Rows {
		r := &a.res.Rows[i]
		c := r.Isolated
		if r.Derived || r.Allowed != "" || r.Facts.Standing == StandingGiven || r.Facts.Standing == StandingLayout || c != nil && (c.Good() || c.Outcome == isolate.Bug) {
			continue
		}
		if n++; n == 1 {
			first = r.Key() + ": " + cmp.Or(r.NotIsolated, a.o.NotIsolated, r.Detail, "it is not isolated")
		}
	}
	if n > 0 {
		a.res.Incomplete = append(a.res.Incomplete, fmt.Sprintf("%s not certified, and certificates are required: the first is %s", amount.Count(n, "entry is", "entries are"), first))
	}
}

// reach reports the passes in which the comparison does not show both ends of the way from the input to the logits: the first
// of them, and how many more there are.
func (a *account) reach() {
	text, more := "", 0
	for _, pass := range a.plan.Common() {
		first, last := a.plan.Ends(pass)
		if first < 0 {
			continue
		}
		for _, i := range []int{first, last} {
			if name := a.plan.Entries[i].Name; !shown(a.plan.Entries, i, pass, a.done) {
				if text != "" {
					more++
				} else {
					text = fmt.Sprintf("pass %d does not reach from the input to the output: %s was not compared", pass, name)
				}
				break
			}
		}
	}
	if more > 0 {
		text += fmt.Sprintf(", and the same in %s", amount.Count(more, "pass more", "passes more"))
	}
	if text != "" {
		a.res.Incomplete = append(a.res.Incomplete, text)
	}
}

// shown reports whether an entry was compared in a pass, or what it is a copy of: without a soft cap the logits are what lm_head returns.
func shown(entries []order.Entry, at, pass int, done map[string]bool) bool {
	for at >= 0 {
		e := &entries[at]
		if done[capture.Key(pass, e.Name, 0)] {
			return true
		}
		_, same := e.Op.(op.Identity)
		if !same || len(e.Inputs) != 1 || e.Inputs[0].Index != nil || e.Inputs[0].Prev {
			return false
		}
		at = slices.IndexFunc(entries[:at], func(in order.Entry) bool { return in.Name == e.Inputs[0].Name })
	}
	return false
}

// SameFile is the sentence about a trace compared with itself.
const SameFile = "both sides are the same file"

// same reports identical sides: the same file, or two traces of one program with all tensors equal, possibly copies
// of each other. Identical sides always match, whatever the port does. An exact port is not affected, because its
// producer differs from the reference's.
func (a *account) same() {
	if a.plan.Mode == sides.Alone {
		return
	}
	l, r := &a.res.Local, &a.res.Reference
	switch {
	case sameFile(a.plan.Sides[local].Trace.Path(), a.plan.Sides[reference].Trace.Path()):
		a.res.Same = SameFile
	case a.plan.Mode != sides.AB && l.Producer.Name != "" && l.Producer.Name == r.Producer.Name && l.Producer.Version == r.Producer.Version && len(a.res.Rows) > 0 && !slices.ContainsFunc(a.res.Rows, differs):
		a.res.Same = "both sides are of " + l.Producer.Name + " and equal in every tensor: one may be a copy of the other"
	default:
		return
	}
	text := a.res.Same + "; that they agree says nothing about a port"
	a.res.Notes = append([]string{text}, a.res.Notes...)
	if a.o.Parity {
		a.res.Incomplete = append(a.res.Incomplete, text)
	}
}

// sameFile reports whether two paths, with links followed, are of one file.
func sameFile(a, b string) bool {
	i, err := os.Stat(a)
	if err != nil {
		return false
	}
	j, err := os.Stat(b)
	return err == nil && os.SameFile(i, j)
}

// differs reports whether a row does not have the same numbers on both sides.
func differs(r Row) bool {
	m := r.Metrics
	return r.Verdict != Match || m == nil || m.Unequal > 0 || m.NonFinite > 0
}

// whyNone is the reason of the first row that has one.
func whyNone(rows []Row) string {
	for i := range rows {
		if r := &rows[i]; r.NotIsolated != "" {
			return r.Key() + ": " + r.NotIsolated
		}
	}
	return "your port computed none of the entries that were compared"
}
