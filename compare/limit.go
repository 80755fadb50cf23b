package compare

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// unlimited returns an [*UnsuitableError] for the first entry that is to be compared within a tolerance and that no rule
// matches. A file of tolerances that has forgotten an entry says nothing about it, and no other limit may guess.
func unlimited(pl *plan.Plan, l *gate.Limits) error {
	if l == nil || len(l.Rules) == 0 || l.Default != nil {
		return nil
	}
	for _, pass := range pl.Common() {
		for i := range pl.Entries {
			e := &pl.Entries[i]
			if !pl.Covered(i) || pl.Derived(i) || e.Compare == order.Pattern || !hasFloats(pl, e.Name, pass) {
				continue
			}
			if t, _ := l.Tolerance(e.Name, pass); t == nil {
				return &UnsuitableError{
					What: "tolerances", Reason: fmt.Sprintf("no pattern of the tolerances matches %q", capture.Key(pass, e.Name, 0)),
					Hint: "end the file with a [[tolerance]] for tensors = \"*\", or give --rtol for tensors that no pattern matches",
				}
			}
		}
	}
	return nil
}

// hasFloats reports whether both sides have an entry of a float dtype, subject to tolerances.
func hasFloats(pl *plan.Plan, name string, pass int) bool {
	for _, s := range pl.Sides {
		if rec, ok := s.Trace.Lookup(pass, name); !ok || !rec.DType.Float() {
			return false
		}
	}
	return true
}

// newAllowed prepares the account of the allow-list.
func newAllowed(l *gate.Limits) []Allowed {
	if l == nil {
		return nil
	}
	var list []Allowed
	for _, a := range l.Allowed {
		list = append(list, Allowed{Tensors: a.Tensors, Passes: a.Passes.String(), Classes: a.Classes, Reason: a.Reason})
	}
	return list
}

// allow marks a mismatch accepted by a line of the allow-list, and adds its key to the line.
func allow(limits *gate.Limits, list []Allowed, r *Row) {
	if r.Verdict != Mismatch || r.Derived || r.Excused != "" {
		return
	}
	if i := limits.Allows(r.Name, r.Pass, r.Class); i >= 0 {
		r.Allowed = limits.Allowed[i].Reason
		list[i].Keys = append(list[i].Keys, r.Key())
	}
}

// NewNoiseFloor makes a noise floor from the comparison of an emulated walk (local) with an exact walk. Entries
// without a relative error, such as ids, are left out. It returns an error unless both walks were compared
// completely.
func NewNoiseFloor(r *Result) (*gate.NoiseFloor, error) {
	if len(r.Missing) > 0 || len(r.Inputs) == 0 {
		return nil, errors.New("a noise floor is measured between two walks of the same scope")
	}
	f := &gate.NoiseFloor{DType: r.Local.DType, Entries: map[string]gate.Noise{}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Class == gate.Shape || row.Name == "input_ids" && row.Verdict == Mismatch {
			return nil, fmt.Errorf("%s differs between the walks: %s", row.Key(), row.Detail)
		}
		m := row.Metrics
		if m == nil || !measure.Finite(float64(m.RelL2)) {
			continue
		}
		n := gate.Noise{RelL2: m.RelL2, Worst: map[string]measure.Number{}}
		for _, a := range m.Axes {
			n.Worst[a.Axis] = max(n.Worst[a.Axis], a.RelL2)
		}
		f.Entries[row.Key()] = n
	}
	return f, nil
}

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
