package naming

import (
	"context"

	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
)

// FindingOf is the finding of a certificate whose entry's form has a mistake; nil for any other.
func FindingOf(c *isolate.Certificate) *diagnose.Finding {
	if s, ok := c.Found.(*searched); ok {
		return s.Finding
	}
	return nil
}

// searched adapts the finding of a search to the interface of package arithmetic.
type searched struct {
	*diagnose.Finding
	under *isolate.Arithmetic // with the mistake, it gives every element
}

// found returns the finding of a search as a mistake under an arithmetic if the finding explains every entry, and nil otherwise.
func found(f *diagnose.Finding, under *isolate.Arithmetic, model *diagnose.Model, err error) (arithmetic.Mistake, int, error) {
	if !f.Explains() || err != nil {
		return nil, model.Taken(), err
	}
	return &searched{f, under}, model.Taken(), nil
}

// Judge judges an entry with the mistake in an arithmetic; nil if the mistake leaves an element of the entry.
func (s *searched) Judge(ctx context.Context, t *isolate.Trial, a *isolate.Arithmetic) (*isolate.Judgement, error) {
	return givenWith(ctx, t, a, s.Edit())
}

// search is the model of a search that may take some work.
func (k *Names) search(work int) *diagnose.Model {
	model := ModelOf(k.i)
	model.Study = k.Study
	model.Work = work
	return model
}

// Number looks for another number or activation.
func (k *Names) Number(ctx context.Context, of []*isolate.Evidence, under []*isolate.Arithmetic, work int) (arithmetic.Mistake, int, error) {
	model := k.search(work)
	for _, a := range under {
		entries, err := SuspectsOf(ctx, of, a)
		if err != nil {
			return nil, model.Taken(), err
		}
		if f, err := diagnose.FindNumber(ctx, model, entries); f.Explains() || err != nil {
			return found(f, a, model, err)
		}
	}
	return nil, model.Taken(), nil
}

// Steps looks for any change to the steps of the operation.
func (k *Names) Steps(ctx context.Context, of []*isolate.Evidence, under []*isolate.Arithmetic, work int) (arithmetic.Mistake, int, error) {
	model := k.search(work)
	first, err := SuspectsOf(ctx, of, under[0])
	if err != nil {
		return nil, 0, err
	}
	last := under[0]
	f, err := diagnose.FindStepsIn(ctx, model, first, func(yield func([]*diagnose.Entry, error) bool) {
		for _, a := range under[1:] {
			last = a
			if !yield(SuspectsOf(ctx, of, a)) {
				return
			}
		}
	})
	return found(f, last, model, err)
}

// Mask looks for another mask.
func (k *Names) Mask(ctx context.Context, of []*isolate.Evidence, under *isolate.Arithmetic, work int) (arithmetic.Mistake, int, error) {
	model := k.search(work)
	entries, err := SuspectsOf(ctx, of, under)
	if err != nil {
		return nil, 0, err
	}
	f, err := diagnose.FindMask(ctx, model, entries)
	return found(f, under, model, err)
}

// GoesOn says how a search goes on that stopped at a number of times its usual work.
func (k *Names) GoesOn(times int) string { return diagnose.GoesOn(times) }

// SuspectsOf prepares some entries for a search.
func SuspectsOf(ctx context.Context, of []*isolate.Evidence, a *isolate.Arithmetic) ([]*diagnose.Entry, error) {
	var entries []*diagnose.Entry
	for _, e := range of {
		s, err := suspectOf(ctx, e, a)
		if err != nil {
			return nil, err
		}
		entries = append(entries, s)
	}
	return entries, nil
}
