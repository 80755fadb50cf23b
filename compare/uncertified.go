package compare

import (
	"cmp"
	"fmt"

	"github.com/tracediff/tracediff/compare/isolate"
)

// Certifying is what somebody said about certificates.
type Certifying int

// What may be said about them.
const (
	IfPossible Certifying = iota // nothing: where there are none, [Result.Uncertified] says so
	Demanded                     // a comparison that has none is incomplete
	Required                     // a comparison is incomplete unless every entry that counts is EXACT or ROUNDING
	Declined
)

// weaker notes that nothing was certified: what matches is then within its limits, and no more is known. A comparison of
// which certificates were demanded is incomplete without any.
func (w *walker) weaker() {
	why := w.o.NotIsolated
	if s := w.res.Isolation; s != nil {
		if s.Certified > s.Unverified+s.Unidentified {
			return
		}
		why = w.whyNone()
	}
	if why == "" || w.o.AB || w.o.Certifying == Declined {
		return
	}
	if w.res.Uncertified = why; w.o.Certifying == Demanded && !w.stopped {
		w.res.Incomplete = append(w.res.Incomplete, "nothing was certified: "+why)
	}
}

// required reports the entries that count and that no certificate calls right, where that is asked of all of them. Those that
// isolation calls wrong are mismatches already. One that an allow-list accepts does not count.
func (w *walker) required() {
	if w.o.Certifying != Required || w.o.AB || w.o.Alone { // of a trace alone it is asked in any case
		return
	}
	n, first := 0, ""
	for i := range w.res.Rows {
		r := &w.res.Rows[i]
		c := r.Isolated
		if r.Derived || r.Allowed != "" || r.Facts.Standing == StandingGiven || r.Facts.Standing == StandingLayout || c != nil && (c.Good() || c.Outcome == isolate.Bug) {
			continue
		}
		if n++; n == 1 {
			first = r.Key() + ": " + cmp.Or(r.NotIsolated, w.o.NotIsolated, r.Detail, "it is not isolated")
		}
	}
	if n > 0 {
		w.res.Incomplete = append(w.res.Incomplete, fmt.Sprintf("%s not certified, and certificates are required: the first is %s", countOf(n, "entry is", "entries are"), first))
	}
}

// whyNone is the reason of the first row that has one.
func (w *walker) whyNone() string {
	for i := range w.res.Rows {
		if r := &w.res.Rows[i]; r.NotIsolated != "" {
			return r.Key() + ": " + r.NotIsolated
		}
	}
	return "the local side computed none of the entries that were compared"
}
