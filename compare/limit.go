package compare

import (
	"errors"
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
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
					Hint: "end the file with a [[tolerance]] for tensors = \"*\", or give --rtol for what no pattern matches",
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
