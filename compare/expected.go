package compare

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Expectation is one pattern of Options.Different and its result. Matching entries may differ, and at least one has
// to differ in some pass: a new feature without an effect where one is expected is as wrong as a feature with
// unexpected effects. To differ means to be a mismatch, since noise also causes differences within the limits.
//
// Different token ids, a NaN or an infinity on only one side, and a missing entry are never excused.
type Expectation struct {
	Pattern  string `json:"pattern"`
	Entries  int    `json:"entries"`         // that it matches, of the order
	Compared int    `json:"compared"`        // rows of them
	Differ   int    `json:"differ"`          // of those rows
	First    string `json:"first,omitempty"` // key of the first that differs
	// Largest is the largest relative L2 of the matching rows that do not differ, or NaN without such rows. It
	// shows how close the pattern came to a difference.
	Largest measure.Number `json:"largest"`
	// Unmet: the walk went to its end, and no row differs. The comparison fails.
	Unmet bool `json:"unmet,omitempty"`
}

// expectations prepares the patterns. A malformed pattern is an error, and so is a pattern without a matching
// entry: a misspelled name would expect nothing.
func expectations(pl *plan.Plan, patterns []string) (list []Expectation, err error) {
	for _, pattern := range patterns {
		if err := hooks.CheckPattern(pattern); err != nil {
			return nil, fmt.Errorf("expected to differ: %w", err)
		}
		e := Expectation{Pattern: pattern, Largest: measure.Nan}
		for i := range pl.Entries {
			if name := pl.Entries[i].Name; name != order.InputIDs && hooks.Match(pattern, name) {
				e.Entries++
			}
		}
		if e.Entries == 0 {
			return nil, fmt.Errorf("expected to differ: %w: %q", errNoEntry, pattern)
		}
		list = append(list, e)
	}
	return list, nil
}

var errNoEntry = errors.New("no entry of the order matches the pattern")

// expected counts a decided row under every matching pattern, and marks an expected mismatch.
func expected(list []Expectation, r *Row) {
	if r.Derived || r.Name == order.InputIDs || r.Verdict == Unverified || r.Class == gate.NonFinite {
		return
	}
	for i := range list {
		e := &list[i]
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

// unmet marks the expectations without a mismatch, after a complete walk.
func unmet(list []Expectation) {
	for i := range list {
		e := &list[i]
		e.Unmet = e.Differ == 0
	}
}

// unmetExpectation reports whether there is one.
func (r *Result) unmetExpectation() bool {
	return slices.ContainsFunc(r.Expected, func(e Expectation) bool { return e.Unmet })
}
