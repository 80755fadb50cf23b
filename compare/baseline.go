package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/baseline"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/internal/tracekey"
	"github.com/tracediff/tracediff/order"
)

// KnownDivergences are the lines of a baseline that are about this comparison.
type KnownDivergences struct {
	File  string // as a person calls it
	Today string // in UTC, as baseline.Date has it
	Lines []baseline.Line
}

// Baseline is the known divergences and what became of each in this comparison.
type Baseline struct {
	File  string      `json:"file"`
	Lines []KnownLine `json:"lines"`
	// Accepted counts the rows covered by a line. Inherited counts the rows over their limit only because of such a
	// row: every operation after it is right on its own inputs.
	Accepted  int `json:"accepted"`
	Inherited int `json:"inherited"`
}

// KnownLine is one known divergence.
type KnownLine struct {
	Key    string     `json:"key"`
	Class  gate.Class `json:"class"`
	Reason string     `json:"reason"`
	Until  string     `json:"until"` // the last day on which it holds, in UTC
	State  KnownState `json:"state"`
	Why    string     `json:"why,omitempty"`  // a sentence, unless it is accepted
	Note   string     `json:"note,omitempty"` // of an accepted line: what was not compared, see [baseline.Line.SetAside]
	// Error is the relative L2 of the tensor at acceptance, and Now the relative L2 in this comparison; NaN if not
	// measured.
	Error measure.Number `json:"error"`
	Now   measure.Number `json:"now"`

	line *baseline.Line
}

// KnownState is what became of a known divergence.
type KnownState string

// The states. The comparison fails unless every line is accepted or unchecked.
const (
	KnownAccepted  KnownState = "accepted"
	KnownGone      KnownState = "gone"      // in scope, and no divergence
	KnownExpired   KnownState = "expired"   // its last day is over
	KnownWorse     KnownState = "worse"     // it shows more than the line covers
	KnownUnchecked KnownState = "unchecked" // out of scope, or after the end of the walk
)

// Failing are the lines that fail the comparison; none without a baseline.
func (b *Baseline) Failing() []KnownLine {
	var failing []KnownLine
	if b != nil {
		for _, l := range b.Lines {
			if l.Fails() {
				failing = append(failing, l)
			}
		}
	}
	return failing
}

// Fails reports whether a line fails the comparison.
func (l KnownLine) Fails() bool { return l.State != KnownAccepted && l.State != KnownUnchecked }

// knownLines tracks the known divergences of a baseline during a comparison. Without a baseline it is empty.
type knownLines struct {
	account *Baseline // nil without a baseline
	today   string
	byKey   map[string]*KnownLine
}

// newKnownLines starts the account of a baseline; known is nil without a baseline.
func newKnownLines(known *KnownDivergences) *knownLines {
	if known == nil {
		return &knownLines{}
	}
	b := &Baseline{File: known.File, Lines: make([]KnownLine, len(known.Lines))}
	k := &knownLines{account: b, today: known.Today, byKey: map[string]*KnownLine{}}
	for i := range known.Lines {
		l := &known.Lines[i]
		b.Lines[i] = KnownLine{Key: l.Key, Class: l.Class, Reason: l.Reason, Until: l.Until, Error: l.Error, Now: measure.Nan, line: l}
		k.byKey[l.Key] = &b.Lines[i]
	}
	return k
}

// accepts reports whether a row is a known divergence, as far as the walk has come: a chain of the local side may begin there.
func (k *knownLines) accepts(key string) bool {
	l := k.byKey[key]
	return l != nil && l.State == KnownAccepted
}

// Shown returns what a baseline records of a mismatch. It needs the row's Class and Facts.
func (r *Row) Shown() baseline.Shown {
	s := baseline.Shown{Key: r.Key(), Class: r.Class, Seen: string(r.Facts.Seen), Error: measure.Nan, Own: measure.Nan}
	if r.Gate != nil {
		s.Error, s.Slices = pastLimit(r.Gate)
	}
	if m := r.Metrics; m != nil {
		if math.IsInf(float64(s.Error), 1) { // the reference is zero, so only absolute units show the size
			s.Slices[gate.LargestElement] = m.MaxAbs
		}
		switch r.Facts.Seen {
		case SeenNonFinite:
			s.Elements = m.NonFinite
		case SeenKeys:
			s.Elements = m.Pattern.Gained + m.Pattern.Lost
		case SeenNumbers:
			s.Elements = m.Unequal
		}
	}
	if c := r.Isolated; c != nil && c.Outcome == isolate.Bug {
		s.Own, s.Cause, s.Mistake = c.RelL2, c.Mistake, c.mistakeKey()
	}
	switch r.Class {
	case gate.Shape:
		s.Shape = r.Local.Shape
	case gate.DType:
		s.DType = r.Local.DType
	}
	return s
}

// pastLimit returns the errors over their limits: of the whole tensor (or NaN), and of the worst index of each
// axis. Errors within their limits are left out, because they vary with rounding.
func pastLimit(g *gate.Gate) (whole measure.Number, slices map[string]measure.Number) {
	whole, slices = measure.Nan, map[string]measure.Number{}
	for _, c := range g.Checks {
		switch {
		case c.Passed():
		case c.What == "tensor":
			whole = c.Error
		default:
			slices[c.What] = max(slices[c.What], c.Error)
		}
	}
	return whole, slices
}

// cover reports whether a line of the baseline covers a row, given the row's verdict without a baseline, and sets
// the state of the line.
func (k *knownLines) cover(r *Row, j Judgement) bool {
	l := k.byKey[r.Key()]
	if l == nil || j.Verdict != Mismatch || r.Derived || r.Name == order.InputIDs {
		return false
	}
	row := *r
	row.Class = j.Class
	now := row.Shown()
	l.Now = now.Error
	switch why := l.line.Uncovered(&now); {
	case l.line.Expired(k.today):
		l.State, l.Why = KnownExpired, "its last day was "+l.Until
	case why != "":
		l.State, l.Why = KnownWorse, why
	default:
		l.State, l.Note = KnownAccepted, l.line.SetAside(&now)
	}
	return l.State == KnownAccepted
}

// excuse says in words why the baseline does not let a row fail the comparison; empty where it does.
func (k *knownLines) excuse(p *pair) string {
	switch p.row.Excused {
	case Accepted:
		l := k.byKey[p.row.Key()]
		k.account.Accepted++
		return fmt.Sprintf("known divergence, until %s: %s", l.Until, l.Reason)
	case Passed:
		k.account.Inherited++
		return "inherited from " + p.isolated.from + ", a known divergence; right on its own inputs"
	}
	return ""
}

// finish sets the state of every line without a mismatch. stopped says that the walk ended at a divergence.
func (k *knownLines) finish(pl *plan.Plan, all []Row, stopped bool) {
	if k.account == nil {
		return
	}
	rows := map[string]*Row{}
	for i := range all {
		rows[all[i].Key()] = &all[i]
	}
	for i := range k.account.Lines {
		l := &k.account.Lines[i]
		switch {
		case l.State != "":
		case l.line.Expired(k.today):
			l.State, l.Why = KnownExpired, "its last day was "+l.Until
		case rows[l.Key] != nil:
			l.State, l.Why = unseen(l, rows[l.Key])
		default:
			l.State, l.Why = absent(pl, l.Key, stopped)
		}
	}
}

// unseen is what became of a line whose row is no mismatch.
func unseen(l *KnownLine, r *Row) (KnownState, string) {
	switch {
	case r.Verdict == Unverified:
		return KnownGone, "it was not judged: " + r.Detail
	case r.Derived:
		return KnownGone, "a capturing side recomputed it: the engine did not fire it"
	case r.Isolated == nil && !math.IsNaN(float64(l.line.Own)):
		return KnownUnchecked, "it was wrong on its own inputs, and this time it was not certified"
	}
	return KnownGone, "it matches now"
}

// absent is what became of a line that has no row.
func absent(pl *plan.Plan, text string, stopped bool) (KnownState, string) {
	key, ok := tracekey.Read(text)
	i := pl.Index(key.Name)
	switch {
	case i < 0 || !ok:
		return KnownGone, noSuchEntry
	case !slices.Contains(pl.Common(), key.Pass), pl.Derived(i), !pl.Walked(i, key.Pass):
		return KnownUnchecked, "out of scope"
	case stopped:
		return KnownUnchecked, "the comparison stopped before it"
	}
	return KnownGone, "it was not compared"
}

const noSuchEntry = "the order has no such entry"
