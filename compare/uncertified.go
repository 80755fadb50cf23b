package compare

// Certifying is what somebody said about certificates.
type Certifying int

// What may be said about them.
const (
	IfPossible Certifying = iota // nothing: where there are none, [Result.Uncertified] says so
	Demanded                     // a comparison that has none is incomplete
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

// whyNone is the reason of the first row that has one.
func (w *walker) whyNone() string {
	for i := range w.res.Rows {
		if r := &w.res.Rows[i]; r.NotIsolated != "" {
			return r.Key() + ": " + r.NotIsolated
		}
	}
	return "no entry that was compared is the result of an operation that the local side computed"
}
