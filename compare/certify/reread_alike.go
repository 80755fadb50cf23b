package certify

import (
	"context"

	"github.com/tracediff/tracediff/order/program"
)

// The first layer reads another tensor than the other layers do: the embeddings, where others read the sum at the end of the layer before. A compiler
// makes the same kernel of it.

// of is the rereading of an entry: that of the form, or if the entry does not have the operand, and one other leaf alone may be read so, the same
// reading of that leaf.
func (r *rereading) of(ctx context.Context, t *trial) (*rereading, error) {
	if t.leaf(r.operand.role) >= 0 || t.computes(r.operand.role) {
		return r, nil
	}
	roles := rereadable([]*evidence{{t, nil}})
	if len(roles) != 1 {
		return r, nil
	}
	alike := &rereading{operand: operand{role: roles[0]}, alike: true}
	again, err := t.recompute(ctx, alike.operand, nil)
	if again == nil || err != nil {
		return r, err
	}
	s, err := again.stepOf(alike.operand.role)
	if s == nil || err != nil {
		return r, err
	}
	step := &partly{form: s.Form, name: s.Name}
	if r.rounded != nil {
		step.readers = r.rounded.readers
		alike.rounded = step
	}
	alike.own = unroundedAt(step, again, r.own)
	return alike, nil
}

// unroundedAt is an arithmetic that does not round a step, nor what passes its result on, in the program of a trial.
func unroundedAt(step *partly, t *trial, a *arithmetic) *arithmetic {
	for _, at := range step.handed(t.formula.Program) {
		s := &t.formula.Steps[at]
		a = a.with(program.Site{Form: s.Form, Name: s.Site}, program.Choice{Round: program.Plain})
	}
	return a
}
