package compare

import (
	"math"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Blame says whose fault a mismatch is.
type Blame string

// The blames.
const (
	// Root: the entry's own operation, or one that was not captured between it and ancestors that match. Certified: it is
	// wrong on its own inputs.
	Root Blame = "ROOT"
	// Inherited: an ancestor's. Certified: right on its own inputs. Not certified: an ancestor does not match, or all do and
	// the error, past its limit, is less than ownGrowth times theirs.
	Inherited Blame = "INHERITED"
	// Unknown: the ancestors reach past what was captured, so nobody can say.
	Unknown Blame = "UNKNOWN"
)

// ownGrowth is how many times the error of its inputs an entry's has to be for its own operation to be blamed where they
// all match: noise that passes a limit has grown by a little at each of many entries, and the one where it does so is no
// more wrong than those before.
const ownGrowth = 2

// blame decides by the certificate where there is one, else by the nearest captured ancestors, and measures how much the
// error grew.
func (w *walker) blame(r *Row) {
	r.Growth = measure.Nan
	if r.Verdict != Mismatch || r.Derived || r.has(Expected) {
		r.Growth = 0
		return
	}
	e, ok := w.entryOf(r.Name)
	if !ok || e.Op == nil || r.Name == order.InputIDs { // nothing is known of it, or it is given and nobody's computation
		return
	}
	a := w.nearest(e, r.Pass)
	var most measure.Number
	matching := 0
	for _, p := range a.parents {
		if p.Verdict != Mismatch {
			matching++
		}
		if err := w.errors[p.Key]; !math.IsNaN(float64(err)) {
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
	case matching < len(a.parents):
		r.Blame = Inherited
	case r.Op == (op.Argument{}).Kind(): // positions: the token ids, which they follow from, match
		r.Blame = Root
	case c == nil && r.Facts.Seen == SeenPast && r.Growth > 0 && r.Growth < ownGrowth: // of other keys, integers or dtypes an error says nothing
		r.Blame = Inherited
	case a.bare || len(a.parents) == 0:
		r.Blame, r.Needs = Unknown, a.needs.String()
	default:
		r.Blame = Root
	}
	if r.Blame == Root && r.Allowed == "" {
		w.res.Roots = append(w.res.Roots, r.Key())
	}
}

// ancestry is what an entry was computed from, as far as it was compared.
type ancestry struct {
	parents []Parent
	between []string      // ancestors on the way that were not compared
	needs   isolate.Needs // what kept those from being compared
	bare    bool          // an argument of the model among them: nothing stands between the entry and the input
}

// nearest collects the nearest compared ancestors of an entry, and what lies between.
func (w *walker) nearest(e *order.Entry, pass int) ancestry {
	a := ancestry{needs: isolate.Needs{Given: w.o.Given}}
	w.ancestors(&a, e, pass, map[string]bool{})
	return a
}

func (w *walker) ancestors(a *ancestry, e *order.Entry, pass int, seen map[string]bool) {
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
		if v, compared := w.verdicts[key]; compared {
			a.parents = append(a.parents, Parent{key, ref.Index, v})
			continue
		}
		a.between = append(a.between, key)
		parent, ok := w.o.Order.Lookup(ref.Name)
		if ok {
			a.needs.Of(parent, at, w.plan.scopes[:]...)
		}
		if !ok || len(parent.Inputs) == 0 {
			a.bare = true
			continue
		}
		w.ancestors(a, parent, at, seen)
	}
}
