package detectable

import (
	"slices"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// model is what mistakes are made in.
func (s *search) model(r *healthyEntry) *diagnose.Model {
	return &diagnose.Model{
		List: s.i.List(), Passes: r.Passes(), Weights: s.i.Env().Weights, Has: func(n order.Node) bool { return s.reader(r, n) != nil },
		Read: func(n order.Node) (program.Value, error) { return s.reader(r, n)() },
	}
}

// reader returns a function to read a tensor that a mistake may use instead of the right tensor. It returns nil for
// an uncaptured tensor and, if the entry covers only some tokens, for every tensor other than the entry's inputs.
func (s *search) reader(r *healthyEntry, n order.Node) func() (program.Value, error) {
	if k := slices.Index(r.whole.Inputs, n); k >= 0 {
		return func() (program.Value, error) { return r.given.In[k], nil }
	}
	if !r.Whole() {
		return nil
	}
	if s.read != nil {
		v, err := s.read(n)
		if v.Shape == nil || err != nil {
			return nil
		}
		return func() (program.Value, error) { return v, nil }
	}
	rec, ok := s.i.Trace().Lookup(n.Pass, s.i.List().Entries[n.Entry].Name)
	if !ok || rec.Firing != 0 || s.i.Misfit(n) != nil {
		return nil
	}
	return func() (program.Value, error) {
		v, _, err := s.i.Value(n)
		return v, err
	}
}
