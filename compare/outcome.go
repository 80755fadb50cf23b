package compare

import (
	"fmt"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
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
	SeenShape: "the shapes differ", SeenNonFinite: "NaN or infinity is on one side alone", SeenKeys: "the two sides see different keys",
	SeenNumbers: "integers or booleans differ", SeenDType: "the dtypes differ", SeenWider: "the dtypes differ",
	SeenPast: "the accumulated error is over its limit",
}

// restsOn says in words which of the two verdicts the outcome rests on.
func (r *Result) restsOn() string {
	switch {
	case r.Divergence != nil:
		return r.decidedBy(&r.Divergence.Row)
	case len(r.Missing) > 0:
		return "what is missing: " + r.noneWrong()
	case r.unmetExpectation():
		return "what was expected to differ and does not"
	case len(r.Baseline.Failing()) > 0:
		l := r.Baseline.Failing()[0]
		return "the baseline: " + l.Key + ": " + l.Why
	case r.ExitCode() != 0:
		return "the coverage: " + r.noneWrong() + ", but that is not enough"
	}
	if b := r.Baseline; b != nil && b.Accepted > 0 {
		return fmt.Sprintf("the baseline for %s; for all others, %s", sides.CountOf(b.Accepted, "known divergence", "known divergences"), r.decidedWell(b.Accepted))
	}
	return r.decidedWell(0)
}

// decidedWell returns the sentence about a comparison without a failing row; accepted is the number of known
// divergences.
func (r *Result) decidedWell(accepted int) string {
	s := r.Isolation
	switch {
	case r.Alone:
		return "isolation alone: there is nothing to compare with"
	case s == nil || s.Exact+s.Rounding+s.Layout+s.Bugs == 0:
		return "the comparison alone: nothing was certified"
	}
	text := "both verdicts: all errors within limits, "
	if s.Drift > 0 {
		text = fmt.Sprintf("isolation where an error is over its limit, in %s: every operation from the token ids to there is right; else both verdicts: all errors within limits, ",
			sides.CountOf(s.Drift, "entry", "entries"))
	}
	if s.Layout > 0 {
		text = "both verdicts: all errors within limits but for other layouts, which cancel, "
	}
	if n, all := s.Exact+s.Rounding+s.Layout, s.Certified+s.NotIsolated; n+min(accepted, s.Bugs) < all {
		return text + fmt.Sprintf("and %d of %s right on their own inputs, the others are not certified", n, sides.CountOf(all-min(accepted, s.Bugs), "entry is", "entries are"))
	}
	return text + "and every operation verified"
}

// noneWrong says that nothing is accused, and what is not known.
func (r *Result) noneWrong() string {
	if s := r.Isolation; s != nil && s.Unidentified > 0 {
		return "nothing that was compared was found wrong, but the arithmetic of " + sides.CountOf(s.Unidentified, "entry is", "entries are") + " not known"
	}
	return "nothing that was compared is wrong"
}

// decidedBy is the sentence on a mismatch.
func (r *Result) decidedBy(row *Row) string {
	wrong := "the operation is wrong on its own inputs"
	if row.Isolated == nil || row.Isolated.Outcome != isolate.Bug {
		wrong = "something that it was computed from, and that was not compared, is wrong"
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
			return "the order, which has another value there: nothing was computed"
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
