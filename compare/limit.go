package compare

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// gateOf decides on a pair: by a person's tolerance, else by the noise floor, else by the table.
func (w *walker) gateOf(p *pair, exact bool) *gate.Gate {
	switch {
	case p.entry.Compare == order.Pattern:
		return &gate.Gate{From: "pattern", Tolerance: measure.Nan}
	case exact:
		return &gate.Gate{From: gate.ByEquality, Tolerance: measure.Nan}
	}
	m := p.row.Metrics
	if t, from := w.o.Limits.Tolerance(p.entry.Name, p.pass); t != nil {
		return t.Gate(m, from)
	}
	if g := w.noise.Gate(m, p.row.Key(), p.entry.Name, p.arithmetic, p.cut != nil); g != nil {
		return g
	}
	return gate.ByTable(m, p.arithmetic, p.early)
}

// unlimited returns an [*UnsuitableError] for the first entry that is to be compared within a tolerance and that no rule
// matches. A file of tolerances that has forgotten an entry says nothing about it, and no other limit may guess.
func (w *walker) unlimited() error {
	l := w.o.Limits
	if l == nil || len(l.Rules) == 0 || l.Default != nil {
		return nil
	}
	for _, pass := range w.plan.common() {
		for i := range w.plan.entries {
			e := &w.plan.entries[i]
			if !w.plan.covered(i) || w.plan.derived(i) || e.Compare == order.Pattern || !w.floats(e.Name, pass) {
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

// floats reports whether both sides have an entry as numbers that a tolerance is for.
func (w *walker) floats(name string, pass int) bool {
	for _, s := range w.sides {
		if rec, ok := s.trace.Lookup(pass, name); !ok || !rec.DType.Float() {
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

// allow marks a mismatch that a line of the allow-list accepts.
func (w *walker) allow(r *Row) {
	if r.Verdict != Mismatch || r.Derived || r.Excused != "" {
		return
	}
	if i := w.o.Limits.Allows(r.Name, r.Pass, r.Class); i >= 0 {
		r.Allowed = w.o.Limits.Allowed[i].Reason
		w.res.Allowed[i].Keys = append(w.res.Allowed[i].Keys, r.Key())
	}
}
