package certify

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/diagnose"
)

// proofOfChange is how many elements a change has to show that rules roundings out. An element has two neighbours that it may be rounded to, so that
// a change which is not the engine's gives each with a chance of a half. An arithmetic has to give proofElements; of changes a thousand are
// tried, and each doubling of the tries asks for one more.
const proofOfChange = proofElements + 10

// changedAttention looks for a change under transformers' own arithmetic to an operation with an attention in it, where no arithmetic is shown
// by the entries. A softmax over large scores has bounds, and a hull, that hold nearly everything.
func changedAttention(ctx context.Context, left, of []*evidence) (*diagnose.Finding, error) {
	if !left[0].formula.Fuses() {
		return nil, nil
	}
	return changedIn(ctx, left, of, []*arithmetic{{}})
}

// changedIn looks for a change to the operation: with it one of some arithmetics gives every element of all entries of a form. The finding is nil where
// no change does. Transformers' own arithmetic and that of torch's kernel are known to the bit, so that no rounding explains what the change does. The
// search is one for the arithmetic of a form, and has the work of such a search.
func changedIn(ctx context.Context, left, of []*evidence, arithmetics []*arithmetic) (*diagnose.Finding, error) {
	if elements, rows := counted(left); elements < proofOfChange || rows < proofRows {
		return nil, nil
	}
	arithmetics = slices.DeleteFunc(slices.Clone(arithmetics), func(a *arithmetic) bool { return !a.strict() && !a.toTheBit() })
	if len(arithmetics) == 0 {
		return nil, nil
	}
	first, err := suspectsOf(ctx, of, arithmetics[0])
	if err != nil {
		return nil, err
	}
	others := func(yield func([]*diagnose.Entry, error) bool) {
		for _, a := range arithmetics[1:] {
			if !yield(suspectsOf(ctx, of, a)) {
				return
			}
		}
	}
	found, err := onAccount(left[0], mistakeWork, func(model *diagnose.Model) (*diagnose.Finding, error) {
		return diagnose.FindStepsIn(ctx, model, first, others)
	})
	if !found.Explains() || err != nil {
		return nil, err
	}
	return found, nil
}

// suspectsOf prepares some entries for a search.
func suspectsOf(ctx context.Context, of []*evidence, a *arithmetic) ([]*diagnose.Entry, error) {
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
