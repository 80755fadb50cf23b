package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// Where no arithmetic explains the entries of a form, a change to their operation may: a mistake of the port. Which changes there are is not known here.

// Mistakes looks for a change to an operation, with which one of some arithmetics gives every element of some entries. A search may take some work; taken is
// what it took. The result is nil if no change gives all elements.
type Mistakes interface {
	// Number looks for another number or activation.
	Number(ctx context.Context, of []*isolate.Evidence, under []*isolate.Arithmetic, work int) (found Mistake, taken int, err error)
	// Steps looks for any change to the steps of the operation.
	Steps(ctx context.Context, of []*isolate.Evidence, under []*isolate.Arithmetic, work int) (found Mistake, taken int, err error)
	// Mask looks for another mask under one arithmetic.
	Mask(ctx context.Context, of []*isolate.Evidence, under *isolate.Arithmetic, work int) (found Mistake, taken int, err error)
	// GoesOn says how a search goes on that stopped at a number of times its usual work.
	GoesOn(times int) string
}

// Mistake is a change to an operation that explains entries. The Mistake of an undecided search stands for all
// changes found.
type Mistake interface {
	isolate.Mistake
	// Judge judges an entry with the change in an arithmetic; nil if the change leaves an element of the entry.
	Judge(ctx context.Context, t *isolate.Trial, a *isolate.Arithmetic) (*isolate.Judgement, error)
}

// Number looks for a wrong number or activation in all entries of a form of unknown arithmetic. The change has to
// give every element in one of a few arithmetics. Number returns nil if the search fails, or if the evidence is too
// small. left are the entries with elements unexplained by transformers' arithmetic.
func (f *Form) Number(ctx context.Context, left, of []*isolate.Evidence) (Mistake, error) {
	if f.mistakes == nil || !proven(left) {
		return nil, nil
	}
	all, err := Under(left, of)
	if err != nil {
		return nil, err
	}
	return onAccount(left[0], searchWork, func(work int) (Mistake, int, error) { return f.mistakes.Number(ctx, of, all, work) })
}

// changedAttention looks for a change under transformers' own arithmetic to an operation with an attention in it, where no arithmetic is shown
// by the entries. A softmax over large scores has bounds, and a hull, that hold nearly everything.
func (f *Form) changedAttention(ctx context.Context, left []*isolate.Evidence) (Mistake, error) {
	if !rewrite.Fuses(left[0].Formula.Program) {
		return nil, nil
	}
	return f.changed(ctx, left, []*isolate.Arithmetic{{}})
}

// changed looks for a change to the operation: with it one of some arithmetics gives every element of all entries of a form. The result is nil where
// no change does. Transformers' own arithmetic and that of torch's kernel are known to the bit, so that no rounding explains what the change does. The
// search is one for the arithmetic of a form, and has the work of such a search.
func (f *Form) changed(ctx context.Context, left []*isolate.Evidence, arithmetics []*isolate.Arithmetic) (Mistake, error) {
	if elements, rows := counted(left); f.mistakes == nil || elements < thresholds.Proof.Change || rows < thresholds.Proof.Rows {
		return nil, nil
	}
	var known []*isolate.Arithmetic
	for _, a := range arithmetics {
		if a.Strict() || toTheBit(a) {
			known = append(known, a)
		}
	}
	if len(known) == 0 {
		return nil, nil
	}
	return onAccount(left[0], mistakeWork, func(work int) (Mistake, int, error) { return f.mistakes.Steps(ctx, f.Entries, known, work) })
}

// goesOn says how the search for an arithmetic goes on.
func (k *Forms) goesOn() string {
	if k.mistakes == nil {
		return ""
	}
	return k.mistakes.GoesOn(k.I.Times())
}
