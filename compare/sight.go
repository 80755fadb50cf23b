package compare

import "github.com/tracediff/tracediff/capture"

// sight asks which of the usual mistakes the entries that were compared would have shown, where somebody wants to know, they were
// certified and nothing is wrong.
func (w *walker) sight() error {
	if !w.o.Sight || w.chain == nil || w.res.ExitCode() != 0 || w.res.Isolation == nil || w.res.Isolation.Bugs > 0 {
		return nil
	}
	var err error
	w.res.Sight, err = w.o.Isolator.Sight(w.ctx, 0, func(name string, pass int) bool {
		return w.unverified[name] == "" && w.Compared(capture.Key(pass, name, 0))
	})
	return err
}

// numbers estimates the numbers of formulas from what lies below the bounds of the local trace, where that was asked for.
func (w *walker) numbers() (err error) {
	if !w.o.Numbers || w.chain == nil || w.stopped || w.res.Isolation == nil {
		return nil
	}
	s := w.res.Isolation
	if s.Numbers, err = w.o.Isolator.Below(w.ctx); err != nil {
		return err
	}
	for _, e := range s.Numbers {
		if e.Remarkable {
			w.res.Notes = append(w.res.Notes, "below the bounds, "+e.Text()+": no mismatch, and more than roundings do")
		}
	}
	return nil
}
