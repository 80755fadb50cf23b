package certify

import (
	"fmt"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// mistake returns what is wrong with all entries of a form, for which no arithmetic is known: the one change to the operation
// with which transformers' arithmetic gives every element of them. What is definite comes before what any rounding may be. It
// is empty where there is none, and where the entries show too little.
func (f *form) mistake(left []*evidence) (string, error) {
	if !proven(left) {
		return "", nil
	}
	first := left[0]
	for k, edit := range first.formula.Edits() {
		same := func(e *evidence) *program.Program { // the same edit of another entry, whose numbers may be others
			if edits := e.formula.Edits(); k < len(edits) {
				return edits[k].Program
			}
			return nil
		}
		if all, err := f.givenBy(left, same); all || err != nil {
			return edit.Words, err
		}
	}
	for _, n := range first.cut.Steps {
		o := first.i.list.Entries[n.Entry].Op
		for _, other := range op.Alike(o) {
			exchange := func(e *evidence) *program.Program {
				g, err := e.cut.FormulaOf(e.i.env.Passes, e.i.env.DType, 0, func(x op.Op) op.Op {
					if x == o {
						return other
					}
					return x
				})
				if err != nil {
					return nil
				}
				return g.Program
			}
			if all, err := f.givenBy(left, exchange); all || err != nil {
				return fmt.Sprintf("is %s, not %s", other.Kind(), o.Kind()), err
			}
		}
	}
	return "", nil
}

// givenBy reports whether programs in place of the entries' own give every element of all of them: first of those of which
// transformers' arithmetic leaves something.
func (f *form) givenBy(left []*evidence, of func(*evidence) *program.Program) (bool, error) {
	for _, entries := range [][]*evidence{left, f.entries} {
		for _, e := range entries {
			p := of(e)
			if p == nil {
				return false, nil
			}
			g := *e.trial
			g.formula = &order.Formula{Program: p, Inputs: e.formula.Inputs, Weights: e.formula.Weights}
			g.other = map[program.Rewrite]*order.Formula{0: g.formula}
			if _, rest, _, err := g.strict(&arithmetic{}); len(rest) > 0 || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}
