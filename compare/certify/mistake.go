package certify

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// underMistakes are the arithmetics under which a mistake is looked for: a port that is wrong may round in its way, too.
var underMistakes = []string{"", "wide", "every 0", "every 1", "double"}

// mistake returns what is wrong with all entries of a form, for which no arithmetic is known: the one change to the operation
// with which transformers' arithmetic, or one of a few others, gives every element of them. What is definite comes before what
// any rounding may be. It is empty where there is none, and where the entries show too little.
func (f *form) mistake(left []*evidence) (string, error) {
	if !proven(left) {
		return "", nil
	}
	first := left[0]
	starts, err := newSearch(left, f.entries).starts()
	if err != nil {
		return "", err
	}
	under := slices.DeleteFunc(starts, func(a *arithmetic) bool {
		return a.rewrites != 0 || !slices.Contains(underMistakes, a.habit) || a.habit == "" && len(a.at) > 0
	})
	for k, edit := range first.formula.Edits() {
		same := func(e *evidence) *program.Program { // the same edit of another entry, whose numbers may be others
			if edits := e.formula.Edits(); k < len(edits) {
				return edits[k].Program
			}
			return nil
		}
		if all, err := f.givenBy(left, under, same); all || err != nil {
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
			if all, err := f.givenBy(left, under, exchange); all || err != nil {
				return fmt.Sprintf("is %s, not %s", other.Kind(), o.Kind()), err
			}
		}
	}
	return "", nil
}

// givenBy reports whether programs in place of the entries' own give every element of all of them, under one of some
// arithmetics: first of those of which transformers' leaves something.
func (f *form) givenBy(left []*evidence, under []*arithmetic, of func(*evidence) *program.Program) (bool, error) {
	for _, a := range under {
		all, elements, rows := true, 0, 0
		for k, e := range slices.Concat(left, f.entries) {
			p := of(e)
			if p == nil {
				return false, nil
			}
			g := *e.trial
			g.formula = &order.Formula{Program: p, Inputs: e.formula.Inputs, Weights: e.formula.Weights}
			g.other = map[program.Rewrite]*order.Formula{0: g.formula}
			j, rest, _, err := g.strict(a)
			if err != nil {
				return false, err
			}
			if all = len(rest) == 0; !all {
				break
			}
			if k < len(left) { // what it has a choice for shows nothing: see [arithmetic.proven]
				shown := slices.DeleteFunc(slices.Clone(e.left), func(i int) bool { return !j.definite(i) })
				elements, rows = elements+len(shown), rows+e.rowsIn(shown)
			}
		}
		if all && elements >= proofElements && rows >= proofRows {
			return true, nil
		}
	}
	return false, nil
}
