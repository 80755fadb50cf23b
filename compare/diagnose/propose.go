package diagnose

import (
	"iter"

	"github.com/tracediff/tracediff/order/program"
)

// generator yields mistakes that the entries of a search may have, the most plausible first. It reads what the search has found so far where one find makes
// others needless.
type generator func(s *search) iter.Seq[Mistake]

// from tries what generators yield.
func (s *search) from(all ...generator) error {
	for _, g := range all {
		for m := range g(s) {
			if err := s.try(s.hypothesis(m)); err != nil {
				return err
			}
		}
		if s.err != nil {
			return s.err
		}
	}
	return nil
}

// trying is the stage of generators.
func trying(all ...generator) stage { return func(s *search) error { return s.from(all...) } }

// hypothesis is that the entries have a mistake.
func (s *search) hypothesis(m Mistake) hypothesis {
	h := hypothesis{of: m.Key(), number: m.X.Value, make: func(e *Entry) *program.Edited { return s.apply(m, e) }, say: func(*Entry) Name { return s.name(m) }}
	if d, ok := s.edit(m); ok {
		h.at = d.At[0]
	}
	if row := catalogue()[m.Kind]; row != nil {
		h.class, h.weak, h.exact = row.Class, row.Weak, row.Exact
		if row.Alike != nil {
			h.of = row.Alike(m)
		}
		if row.Solved != nil {
			h.solved = row.Solved(m)
		}
	}
	return h
}

// name is a mistake in words, with the fields of the configuration that have its numbers.
func (s *search) name(m Mistake) Name {
	n := m.name()
	if row := catalogue()[m.Kind]; row != nil && row.Field != "" && m.Right.Has {
		n.Fields = s.fields(m.Right.Value, row.Field)
	}
	return n
}
