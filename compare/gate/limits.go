package gate

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Limits are what a person allows, in place of what the noise floor or the table do. The zero value allows nothing of its
// own.
type Limits struct {
	Rules   []Rule     // the first that matches an entry decides
	Default *Tolerance // for entries without a rule; nil: an entry without a rule is an error if there are rules
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
// Token or Channel is set, which then takes RTol's place. Of the row of one token a channel is limited only where Channel is set. RTol and
// ATol both zero: equal, or a mismatch.
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

// defaultAllowed is the class of an Allow without classes: a wrong number. A different shape or a NaN needs a line of its own.
var defaultAllowed = []Class{Value}

// Tolerance returns what a person said about an entry, and where.
func (l *Limits) Tolerance(name string, pass int) (t *Tolerance, from string) {
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

// Allows returns the first line that accepts a mismatch; −1 if none does. Token ids are no result that could be accepted.
func (l *Limits) Allows(name string, pass int, class Class) int {
	if l == nil || name == order.InputIDs {
		return -1
	}
	return slices.IndexFunc(l.Allowed, func(a Allow) bool {
		return a.Passes.Has(pass) && slices.Contains(a.Classes, class) && hooks.Match(a.Tensors, name)
	})
}

// Gate decides by a person's tolerance.
func (t *Tolerance) Gate(m *measure.Metrics, from string) *Gate {
	den := max(float64(m.Norm), float64(m.Floor))
	if t.ATol > 0 && den == 0 {
		return &Gate{From: from, Tolerance: m.RelL2, Checks: []Check{{LargestElement, m.MaxAbs, measure.Number(t.ATol)}}}
	}
	absolute := 0.0
	if t.ATol > 0 {
		absolute = t.ATol * math.Sqrt(float64(m.Compared)) / den
	}
	own := map[string]*float64{"token": t.Token, channel: t.Channel}
	axes := limited(m)
	if t.Channel != nil {
		axes = m.Axes
	}
	return newGate(m, axes, from, t.RTol+absolute, func(a measure.AxisError) float64 {
		if limit := own[a.Axis]; limit != nil {
			return *limit + absolute*factor(a)
		}
		return (t.RTol + absolute) * factor(a)
	})
}
