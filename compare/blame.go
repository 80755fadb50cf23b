package compare

import (
	"math"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Blame says whose fault a mismatch is.
type Blame string

// The blames.
const (
	// Root: the entry's own operation, or an uncaptured operation between the entry and its matching ancestors.
	// Certified: the entry is wrong on its own inputs.
	Root Blame = "ROOT"
	// Inherited: the error comes from an ancestor. Certified: the entry is right on its own inputs. Not certified:
	// an ancestor does not match, or all ancestors match and the entry's error, over its limit, is less than
	// ownGrowth times theirs.
	Inherited Blame = "INHERITED"
	// Unknown: too few ancestors were captured to decide.
	Unknown Blame = "UNKNOWN"
)

// ownGrowth is the factor between the error of an entry and the largest error of its matching inputs from which the
// entry's own operation is blamed. Noise grows a little at each of many entries, and the first entry over a limit
// is no more wrong than the entries before it.
const ownGrowth = 2

// blame sets the blame of a row from its certificate or, without one, from its nearest captured ancestors. It also
// sets the growth of the error.
func (a *ancestors) blame(r *Row) {
	r.Growth = measure.Nan
	if r.Verdict != Mismatch || r.Derived || r.has(Expected) {
		r.Growth = 0
		return
	}
	e, ok := a.plan.Entry(r.Name)
	if !ok || e.Op == nil || r.Name == order.InputIDs { // nothing is known of it, or it is given and nobody's computation
		return
	}
	found := a.nearest(e, r.Pass)
	var most measure.Number
	matching := 0
	for _, p := range found.parents {
		if p.Verdict != Mismatch {
			matching++
		}
		if err := a.decided.errors[p.Key]; !math.IsNaN(float64(err)) {
			most = max(most, err)
		}
	}
	if r.Metrics != nil && most > 0 {
		r.Growth = r.Metrics.RelL2 / most
	}
	switch c := r.Isolated; {
	case c != nil && c.Outcome == isolate.Bug:
		r.Blame = Root
	case c != nil && c.Good():
		r.Blame = Inherited
	case matching < len(found.parents):
		r.Blame = Inherited
	case r.Op == (op.Argument{}).Kind(): // positions: the token ids, which they follow from, match
		r.Blame = Root
	case c == nil && r.Facts.Seen == SeenPast && r.Growth > 0 && r.Growth < ownGrowth: // of other keys, integers or dtypes an error says nothing
		r.Blame = Inherited
	case found.bare || len(found.parents) == 0:
		r.Blame, r.Needs = Unknown, found.needs.String()
	default:
		r.Blame = Root
	}
}

// ancestry holds the nearest compared ancestors of an entry.
type ancestry struct {
	parents []Parent
	between []string      // ancestors on the way that were not compared
	needs   isolate.Needs // what kept those from being compared
	bare    bool          // an argument of the model among them: nothing stands between the entry and the input
}

// ancestors finds what entries were computed from, as far as it was compared.
type ancestors struct {
	plan    *plan.Plan
	decided *decided
	given   bool // the local trace is a file that a person made
}

// nearest collects the nearest compared ancestors of an entry, and what lies between.
func (a *ancestors) nearest(e *order.Entry, pass int) ancestry {
	found := ancestry{needs: isolate.Needs{Given: a.given}}
	a.collect(&found, e, pass, map[string]bool{})
	return found
}

func (a *ancestors) collect(found *ancestry, e *order.Entry, pass int, seen map[string]bool) {
	for _, ref := range e.Inputs {
		at := pass
		if ref.Prev {
			at -= 1 + ref.Back
		}
		key := capture.Key(max(at, 0), ref.Name, 0)
		if at < 0 || seen[key] {
			continue
		}
		seen[key] = true
		if v, compared := a.decided.verdicts[key]; compared {
			found.parents = append(found.parents, Parent{key, ref.Index, v})
			continue
		}
		found.between = append(found.between, key)
		parent, ok := a.plan.List.Lookup(ref.Name)
		if ok {
			found.needs.Of(parent, at, a.plan.Scopes.Of[:]...)
		}
		if !ok || len(parent.Inputs) == 0 {
			found.bare = true
			continue
		}
		a.collect(found, parent, at, seen)
	}
}
