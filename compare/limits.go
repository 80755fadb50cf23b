package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Limits are what a person allows, in place of what the noise floor or the table do. The zero value allows nothing of its
// own.
type Limits struct {
	Rules   []Rule     // the first that matches an entry decides
	Default *Tolerance // of entries that no rule matches; nil: where there are rules, such an entry is an error
	Allowed []Allow
}

// Tolerance limits the errors of an entry, n being the number of compared elements:
//
//	‖l − r‖ ≤ RTol · max(‖r‖, Floor) + ATol · √n
//
// so that RTol is a relative L2 and ATol a root mean square in the tensor's own units, which is turned into a relative
// one by the size of the tensor. A reference that is zero has no size: there no element may be off by more than ATol.
//
// A slice may be off by the multiple of this that the documentation of [Gate] gives, but for tokens and channels where
// Token or Channel is set, which then takes RTol's place. Both zero: equal, or a mismatch.
type Tolerance struct {
	RTol, ATol     float64
	Token, Channel *float64 // of the worst token and the worst channel; nil: a multiple of the tensor's
}

// Rule has the tolerance of the entries whose names match.
type Rule struct {
	Tensors string         // a pattern as in a scope: '*' is any run of characters
	Passes  capture.Ranges // none: all
	Tolerance
}

// Allow is a mismatch that is known and accepted, and why.
type Allow struct {
	Tensors string         // a pattern
	Passes  capture.Ranges // none: all
	Classes []Class        // of the mismatch
	Reason  string
}

// DefaultAllowed is what an Allow is about where it does not say: a number that is not what it should be. A shape that
// differs or a NaN is another thing, and hides behind no such line.
var DefaultAllowed = []Class{Value}

// tolerance returns what a person said about an entry, and where.
func (l *Limits) tolerance(name string, pass int) (t *Tolerance, from string) {
	if l == nil {
		return nil, ""
	}
	for i := range l.Rules {
		if r := &l.Rules[i]; r.Passes.Has(pass) && hooks.Match(r.Tensors, name) {
			return &r.Tolerance, fmt.Sprintf("tolerances, %q", r.Tensors)
		}
	}
	return l.Default, "flags"
}

// allows returns the first line that accepts a mismatch; −1 if none does. Token ids are no result that could be accepted.
func (l *Limits) allows(name string, pass int, class Class) int {
	if l == nil || name == order.InputIDs {
		return -1
	}
	return slices.IndexFunc(l.Allowed, func(a Allow) bool {
		return a.Passes.Has(pass) && slices.Contains(a.Classes, class) && hooks.Match(a.Tensors, name)
	})
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
			if t, _ := l.tolerance(e.Name, pass); t == nil {
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

// gate decides by a person's tolerance.
func (t *Tolerance) gate(m *Metrics, from string) *Gate {
	den := max(float64(m.Norm), float64(m.Floor))
	if t.ATol > 0 && den == 0 {
		return &Gate{From: from, Tolerance: m.RelL2, Checks: []Check{{largestElement, m.MaxAbs, Number(t.ATol)}}}
	}
	absolute := 0.0
	if t.ATol > 0 {
		absolute = t.ATol * math.Sqrt(float64(m.Compared)) / den
	}
	own := map[string]*float64{"token": t.Token, "channel": t.Channel}
	return m.gate(from, t.RTol+absolute, func(a AxisError) float64 {
		if limit := own[a.Axis]; limit != nil {
			return *limit + absolute*a.factor()
		}
		return (t.RTol + absolute) * a.factor()
	})
}

// newAllowed prepares the account of the allow-list.
func newAllowed(l *Limits) []Allowed {
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
	if r.Verdict != Mismatch || r.Derived {
		return
	}
	if i := w.o.Limits.allows(r.Name, r.Pass, r.Class); i >= 0 {
		r.Allowed = w.o.Limits.Allowed[i].Reason
		w.res.Allowed[i].Keys = append(w.res.Allowed[i].Keys, r.Key())
	}
}
