package diagnose

import (
	"context"
	"iter"
	"slices"
)

// FindStepsIn is [FindSteps] where the engine may have one of several arithmetics. The edits are tried on the entries in the first arithmetic. If none
// explains them, those that come nearest to the trace are tried in each of the others, of which there are the same entries: two arithmetics of an
// operation are some roundings apart, so that an edit that is far from the trace in one is far from it in all.
func FindStepsIn(ctx context.Context, m *Model, entries []*Entry, others iter.Seq2[[]*Entry, error]) (*Finding, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	s := newSearch(ctx, m, entries)
	s.close = &closest{}
	found, err := s.find([]stage{(*search).steps})
	if found.Explains() || err != nil {
		return found, err
	}
	for entries, err := range others {
		if err != nil {
			return nil, err
		}
		again := newSearch(ctx, m, entries)
		more, err := again.find([]stage{func(again *search) error { return again.each(s.close.all) }})
		if more.Explains() || err != nil {
			return more, err
		}
		found.Tried, found.Stopped = more.Tried, found.Stopped || more.Stopped
	}
	return found, nil
}

// mostClose is how many edits are tried in other arithmetics.
const mostClose = 32

// closest are the hypotheses that come nearest to the first entry of a search, the nearest first.
type closest struct {
	all []hypothesis
	far []float64
}

// add takes in a hypothesis that is so far from the trace.
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

// each tries some hypotheses.
func (s *search) each(all []hypothesis) error {
	for _, h := range all {
		if err := s.try(h); err != nil {
			return err
		}
	}
	return nil
}
