package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order/program"
)

// The first layer reads another tensor than the other layers do: the embeddings, where others read the sum at the end of the layer before. A compiler
// makes the same kernel of it.

// of returns the rereading of an entry: the form's, or, if the entry lacks the operand and has exactly one other
// rereadable leaf, the same reading of this leaf.
func (r *rereading) of(ctx context.Context, t *isolate.Trial) (*rereading, error) {
	if isolate.Leaf(t, r.operand.Role) >= 0 || isolate.Computes(t, r.operand.Role) {
		return r, nil
	}
	roles := rereadable([]*isolate.Evidence{{Trial: t, Left: nil}})
	if len(roles) != 1 {
		return r, nil
	}
	alike := &rereading{operand: isolate.Operand{Role: roles[0]}, alike: true}
	again, err := isolate.Recompute(ctx, t, alike.operand, nil)
	if again == nil || err != nil {
		return r, err
	}
	s, err := isolate.StepOf(again, alike.operand.Role)
	if s == nil || err != nil {
		return r, err
	}
	step := &isolate.PartlyRounded{Form: s.Form, Name: s.Name}
	if r.rounded != nil {
		step.Readers = r.rounded.Readers
		alike.rounded = step
	}
	alike.Own = unroundedAt(step, again, r.Own)
	return alike, nil
}

// unroundedAt returns an arithmetic without rounding at a step and at the steps passing its result on, in the
// program of a trial.
func unroundedAt(step *isolate.PartlyRounded, t *isolate.Trial, a *isolate.Arithmetic) *isolate.Arithmetic {
	for _, at := range step.Handed(t.Formula.Program) {
		s := &t.Formula.Steps[at]
		a = a.With(program.Site{Form: s.Form, Name: s.Site}, program.Choice{Round: program.Plain})
	}
	return a
}
