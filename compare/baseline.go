package compare

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/compare/baseline"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
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
	// Accepted counts the rows that a line covers, and Inherited those that have their error from such a row: past their limit, and
	// right on their own inputs as all is between them.
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
	Why    string     `json:"why,omitempty"` // a sentence, unless it is accepted
	// Error is the relative L2 of the tensor when it was accepted, and Now the one of this comparison; NaN where there is none.
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
	KnownUnchecked KnownState = "unchecked" // out of scope, or behind the end of the walk
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

// newBaseline prepares the account of the baseline; nil without one.
func (w *walker) newBaseline() *Baseline {
	known := w.o.Baseline
	if known == nil {
		return nil
	}
	b := &Baseline{File: known.File, Lines: make([]KnownLine, len(known.Lines))}
	w.lines = map[string]*KnownLine{}
	for i := range known.Lines {
		l := &known.Lines[i]
		b.Lines[i] = KnownLine{Key: l.Key, Class: l.Class, Reason: l.Reason, Until: l.Until, Error: l.Error, Now: measure.Nan, line: l}
		w.lines[l.Key] = &b.Lines[i]
	}
	return b
}

// accept tells the chain of the local side which rows it may begin at. That of the reference begins at the token ids.
func (w *walker) accept() {
	if w.chain != nil && w.o.Baseline != nil {
		w.chain.Accepted = func(key string) bool {
			l := w.lines[key]
			return l != nil && l.State == KnownAccepted
		}
	}
}

// Shown is what a row that does not match shows, as a baseline records it. Class and Facts of the row have to be known.
func (r *Row) Shown() baseline.Shown {
	s := baseline.Shown{Key: r.Key(), Class: r.Class, Seen: string(r.Facts.Seen), Error: measure.Nan, Own: measure.Nan}
	if r.Gate != nil {
		s.Error, s.Slices = pastLimit(r.Gate)
	}
	if m := r.Metrics; m != nil {
		if math.IsInf(float64(s.Error), 1) { // over a reference of zero: only its own units say how large it is
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
		s.Own, s.Cause, s.Mistake = c.RelL2, c.Mistake, c.MistakeKey()
	}
	switch r.Class {
	case gate.Shape:
		s.Shape = r.Local.Shape
	case gate.DType:
		s.DType = r.Local.DType
	}
	return s
}

// pastLimit are the errors that are past their limits: of the tensor, NaN where it is not, and of the worst index of an axis. What is
// within its limit is no more than what roundings make, and grows and shrinks with them.
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

// known reports whether a line of the baseline covers a row, given the verdict that it has without one, and notes what became of
// the line.
func (w *walker) known(p *pair, j Judgement) bool {
	r := p.row
	l := w.lines[r.Key()]
	if l == nil || j.Verdict != Mismatch || r.Derived || r.Name == order.InputIDs {
		return false
	}
	row := *r
	row.Class = j.Class
	now := row.Shown()
	l.Now = now.Error
	switch why := l.line.Uncovered(&now); {
	case l.line.Expired(w.o.Baseline.Today):
		l.State, l.Why = KnownExpired, "its last day was "+l.Until
	case why != "":
		l.State, l.Why = KnownWorse, why
	default:
		l.State = KnownAccepted
	}
	return l.State == KnownAccepted
}

// excuse says in words why the baseline does not let a row fail the comparison; empty where it does.
func (w *walker) excuse(p *pair) string {
	switch p.row.Excused {
	case Accepted:
		l := w.lines[p.row.Key()]
		w.res.Baseline.Accepted++
		return fmt.Sprintf("known divergence, until %s: %s", l.Until, l.Reason)
	case Passed:
		w.res.Baseline.Inherited++
		return "inherited from " + p.from + ", a known divergence; right on its own inputs"
	}
	return ""
}

// baseline says of the lines of which no mismatch was found what that means.
func (w *walker) baseline() {
	if w.res.Baseline == nil {
		return
	}
	rows := map[string]*Row{}
	for i := range w.res.Rows {
		rows[w.res.Rows[i].Key()] = &w.res.Rows[i]
	}
	for i := range w.res.Baseline.Lines {
		l := &w.res.Baseline.Lines[i]
		switch {
		case l.State != "":
		case l.line.Expired(w.o.Baseline.Today):
			l.State, l.Why = KnownExpired, "its last day was "+l.Until
		case rows[l.Key] != nil:
			l.State, l.Why = w.unseen(l, rows[l.Key])
		default:
			l.State, l.Why = w.absent(l.Key)
		}
	}
}

// unseen is what became of a line whose row is no mismatch.
func (w *walker) unseen(l *KnownLine, r *Row) (KnownState, string) {
	switch {
	case r.Verdict == Unverified:
		return KnownGone, "it was not judged: " + r.Detail
	case r.Derived:
		return KnownGone, "a capturing side recomputed it: no engine fired it"
	case r.Isolated == nil && !math.IsNaN(float64(l.line.Own)):
		return KnownUnchecked, "it was wrong on its own inputs, and this time it was not certified"
	}
	return KnownGone, "it matches now"
}

// keyParts are the pass, the name and the firing of a key.
var keyParts = regexp.MustCompile(`^(?:pass(\d+)/)?(.+?)(?:#\d+)?$`)

// absent is what became of a line that has no row.
func (w *walker) absent(key string) (KnownState, string) {
	parts := keyParts.FindStringSubmatch(key)
	if parts == nil {
		return KnownGone, noSuchEntry
	}
	i := slices.IndexFunc(w.plan.entries, func(e order.Entry) bool { return e.Name == parts[2] })
	pass, err := strconv.Atoi(cmp.Or(parts[1], "0"))
	switch {
	case i < 0 || err != nil:
		return KnownGone, noSuchEntry
	case !slices.Contains(w.plan.common(), pass), !w.plan.covered(i), w.plan.derived(i), w.plan.rowless(i, pass):
		return KnownUnchecked, "out of scope"
	case w.stopped:
		return KnownUnchecked, "the comparison stopped before it"
	}
	return KnownGone, "it was not compared"
}

const noSuchEntry = "the order has no such entry"
