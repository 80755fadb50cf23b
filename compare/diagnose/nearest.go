package diagnose

import (
	"context"
	"iter"
	"slices"
)

// FindStepsIn is [FindSteps] for an engine with one of several possible arithmetics. entries are in the first arithmetic, and others yields the same
// entries in each further arithmetic. The search tries all edits in the first arithmetic. If no edit explains the entries, the search tries the
// mostClose edits nearest to the trace in each further arithmetic. Two arithmetics of one operation differ by a few roundings, so an edit that is far
// from the trace in one arithmetic is far from the trace in every arithmetic. Errors come from FindSteps or from others.
func FindStepsIn(ctx context.Context, m *Model, entries []*Entry, others iter.Seq2[[]*Entry, error]) (*Finding, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	s := newSearch(ctx, m, entries)
	s.close, s.measured = &closest{}, true
	found, err := s.find([]stage{inSteps})
	if found.Explains() || err != nil {
		return found, err
	}
	for entries, err := range others {
		if err != nil {
			return nil, err
		}
		if m.Spent() {
			found.stoppedIn(underOthers)
			break
		}
		again := newSearch(ctx, m, entries)
		more, err := again.find([]stage{{underOthers, inFormula, func(again *search) error { return tryEach(again, s.close.all) }}})
		if more.Explains() || err != nil {
			return more, err
		}
		found.Tried = more.Tried
		found.stoppedIn(more.NotReached...)
	}
	return found, nil
}

// mostClose is the number of edits that are tried in further arithmetics.
const mostClose = 32

// closest holds the hypotheses that come nearest to the first entry of a search, the nearest first.
type closest struct {
	all []hypothesis
	far []float64
}

// add takes in a hypothesis if its distance from the trace is one of the smallest. A nil closest takes in nothing.
func (c *closest) add(h hypothesis, far float64) {
	if c == nil || far-far != 0 {
		return
	}
	at, _ := slices.BinarySearch(c.far, far)
	if at >= mostClose {
		return
	}
	c.all, c.far = slices.Insert(c.all, at, h), slices.Insert(c.far, at, far)
	if len(c.all) > mostClose {
		c.all, c.far = c.all[:mostClose], c.far[:mostClose]
	}
}

// tryEach tries some hypotheses.
func tryEach(s *search, all []hypothesis) error {
	for _, h := range all {
		if err := s.try(h); err != nil {
			return err
		}
	}
	return nil
}
