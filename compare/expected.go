package compare

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Expectation is one pattern of Options.Different and what came of it. Entries that it matches may differ, and one of them
// has to, in some pass: a feature that was switched on and changes nothing where it should is as wrong as one that
// changes something else. To differ is to be a mismatch; a difference within the limits is what noise makes, too.
//
// Nothing excuses different token ids, a NaN or an infinity on one side alone, or an entry that one side does not have.
type Expectation struct {
	Pattern  string `json:"pattern"`
	Entries  int    `json:"entries"`         // that it matches, of the order
	Compared int    `json:"compared"`        // rows of them
	Differ   int    `json:"differ"`          // of those rows
	First    string `json:"first,omitempty"` // key of the first that differs
	// Largest is the largest relative L2 of the rows that do not differ, NaN where there is none: so near to nothing is
	// what the pattern was to show.
	Largest measure.Number `json:"largest"`
	// Unmet: the walk went to its end, and no row differs. The comparison fails.
	Unmet bool `json:"unmet,omitempty"`
}

// expect prepares the patterns. One that is malformed or that no entry matches is an error: a name misspelled would expect
// nothing.
func (w *walker) expect() error {
	for _, pattern := range w.o.Different {
		if err := hooks.CheckPattern(pattern); err != nil {
			return fmt.Errorf("expected to differ: %w", err)
		}
		e := Expectation{Pattern: pattern, Largest: measure.Nan}
		for i := range w.plan.entries {
			if name := w.plan.entries[i].Name; name != order.InputIDs && hooks.Match(pattern, name) {
				e.Entries++
			}
		}
		if e.Entries == 0 {
			return fmt.Errorf("expected to differ: %w: %q", errNoEntry, pattern)
		}
		w.res.Expected = append(w.res.Expected, e)
	}
	return nil
}

var errNoEntry = errors.New("no entry of the order matches the pattern")

// expected notes a decided row with the patterns that match it, and marks a mismatch that they expect.
func (w *walker) expected(r *Row) {
	if r.Derived || r.Name == order.InputIDs || r.Verdict == Unverified || r.Class == gate.NonFinite {
		return
	}
	for i := range w.res.Expected {
		e := &w.res.Expected[i]
		if !hooks.Match(e.Pattern, r.Name) {
			continue
		}
		e.Compared++
		switch {
		case r.Verdict == Match:
			if m := r.Metrics; m != nil && (m.RelL2 > e.Largest || e.Largest != e.Largest) { // the first replaces NaN
				e.Largest = m.RelL2
			}
			continue
		case e.Differ == 0:
			e.First = r.Key()
		}
		e.Differ++
		if !r.has(Expected) {
			r.Notes = append(r.Notes, Note{Expected, fmt.Sprintf("expected to differ (%s): %s", e.Pattern, r.Detail)})
		}
	}
}

// unmet decides, when the walk went to its end, which expectations were not borne out.
func (w *walker) unmet() {
	for i := range w.res.Expected {
		e := &w.res.Expected[i]
		e.Unmet = !w.stopped && e.Differ == 0
	}
}

// unmetExpectation reports whether there is one.
func (r *Result) unmetExpectation() bool {
	return slices.ContainsFunc(r.Expected, func(e Expectation) bool { return e.Unmet })
}
