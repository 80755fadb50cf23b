package diagnose

import (
	"cmp"
	"context"
)

// Find looks for the edit with which the programs give every element of all entries. If no edit does, or if several edits of different values do, the
// finding has no name, says what was tried and describes the difference. The finding is nil without entries. The error comes from reading the trace or the
// weights, or from an edit that is no program.
func Find(ctx context.Context, m *Model, entries []*Entry) (*Finding, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	s := newSearch(ctx, m, entries)
	f, err := s.find(stages())
	if err == nil && !f.Explains() {
		m.unnamed = cmp.Or(m.unnamed, s)
		if f.Description = s.description; !s.described {
			f.Description, err = describe(s)
		}
	}
	return f, err
}

// FindTwo looks for two mistakes in the entries of the first call of [Find] without a name. A second search costs as much as
// the first, so callers look for one mistake in all ways before. The finding is nil without such a call.
func FindTwo(m *Model) (*Finding, error) {
	s := m.unnamed
	if s == nil {
		return nil, nil
	}
	s.tried, s.stopped, s.unended = m.tried, false, nil
	return s.find([]stage{inTwo})
}

// FindSteps is [Find] with only the edits of steps and numbers, and their known combinations.
func FindSteps(ctx context.Context, m *Model, entries []*Entry) (*Finding, error) {
	return find(ctx, m, entries, []stage{inSteps})
}

// FindNumber is [Find] with a few known mistakes of ports that may move elements as little as rounding does: a count that is off by one, an activation of
// another family, a number that is 0 or off by powers of ten, a vector of weights that was not loaded. A match makes a BUG of an entry that some choice of
// roundings could give, so no other edit is tried.
func FindNumber(ctx context.Context, m *Model, entries []*Entry) (*Finding, error) {
	return find(ctx, m, entries, []stage{cautious})
}

// FindMask is [Find] with one kind of edit: masks with another window, with blocks or a prefix, or with a key that is masked.
func FindMask(ctx context.Context, m *Model, entries []*Entry) (*Finding, error) {
	return find(ctx, m, entries, []stage{inMasks})
}

// fewTokens looks at masks before all other edits, if the entries are large and the unexplained elements lie in less than half of the tokens. A mistake in
// any other step shows in all tokens.
func fewTokens(s *search) error {
	for _, e := range s.entries {
		at := tokenAxis(s.subject, e)
		if e.Few == nil || at < 0 {
			return nil
		}
		if has, n := e.leftTokens(at); 2*n >= len(has) {
			return nil
		}
	}
	return s.from(windows, sights)
}

// cautiousSteps looks at the edits of [FindNumber].
func cautiousSteps(s *search) error {
	s.cautious = true
	return s.from(counts, otherActivations, otherNumbers, unloaded)
}

func find(ctx context.Context, m *Model, entries []*Entry, stages []stage) (*Finding, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	return newSearch(ctx, m, entries).find(stages)
}
