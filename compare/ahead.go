package compare

// logits is the entry of which the most likely tokens are compared too.
const logits = "logits"

// readAhead has the tensors measured that the walk comes to after entry i of a pass, until enough are on their way. Those
// that it will not measure, because their shapes differ, are left out. An error is left to the walk, which meets it where
// it matters.
func (w *walker) readAhead(i, pass int) {
	for w.next = max(w.next, i+1); w.next < len(w.plan.entries) && !w.meter.Full(); w.next++ {
		if !w.plan.covered(w.next) || w.plan.rowless(w.next, pass) {
			continue
		}
		e := &w.plan.entries[w.next]
		l, hasL := w.sides[local].trace.Lookup(pass, e.Name)
		r, hasR := w.sides[reference].trace.Lookup(pass, e.Name)
		if !hasL || !hasR {
			continue
		}
		p, err := w.pair(w.next, pass, l, r)
		if err == nil && p.seen == SeenWithin {
			w.meter.Prepare(p.l, p.r, e.Compare, e.Name == logits)
		}
	}
}
