package arithmetic

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// Some mistakes in a mask show in few tokens: a window that is one key short changes only the tokens beyond the window. The engine's arithmetic gives the
// other tokens to the bit. A different arithmetic would show in most tokens. So the search tries masks before it tries arithmetics.

// spreadTokens is how many tokens, spread over an entry, an arithmetic is asked for before it is asked for all tokens.
const spreadTokens = 8

// maskedIn looks for another mask under an arithmetic that gives all elements of more than half of the tokens of each of some entries. The finding is nil
// if the arithmetic does not, if no mask explains all of these entries, and if they show too little. With a finding the arithmetic is that of the form.
func (f *Form) maskedIn(ctx context.Context, of []*isolate.Evidence, a *isolate.Arithmetic) (Mistake, error) {
	if f.mistakes == nil || !rewrite.Fuses(of[0].Formula.Program) {
		return nil, nil
	}
	if !a.Strict() {
		var err error
		if of, err = leftUnder(ctx, of, a); err != nil {
			return nil, err
		}
	}
	if elements, rows := counted(of); elements < thresholds.Proof.Change || rows < thresholds.Proof.Rows || slices.ContainsFunc(of, func(e *isolate.Evidence) bool { return !inFewTokens(e) }) {
		return nil, nil
	}
	found, err := onAccount(of[0], mistakeWork, func(work int) (Mistake, int, error) { return f.mistakes.Mask(ctx, of, a, work) })
	if found == nil || err != nil {
		return nil, err
	}
	f.Own, f.Definite = a, found.Named()
	return found, nil
}

// maskedFirst tries other masks under transformers' arithmetic. Large entries have to be right in a few tokens that are spread over each of them.
func (f *Form) maskedFirst(ctx context.Context) (err error) {
	for _, e := range f.Entries {
		if few := spreadOver(e); few != nil && len(few.Left) > 0 {
			return nil
		}
	}
	f.Wrong, err = f.maskedIn(ctx, f.Entries, &isolate.Arithmetic{})
	return err
}

// maskedUnder looks for another mask under transformers' arithmetic, or under some known kernels, also with float32 in front of them, in more than half of
// the entries. Large entries are asked under the one arithmetic that gives most of a few tokens which are spread over them. The other entries may have the
// second arithmetic of the form.
func (f *Form) maskedUnder(ctx context.Context, left []*isolate.Evidence, kernels []*isolate.Arithmetic) error {
	var some []*isolate.Evidence
	of := samples(left)
	for _, e := range of {
		few := spreadOver(e)
		if few == nil {
			return f.maskedInAny(ctx, kernels)
		}
		some = append(some, few)
	}
	all, err := inFront(newSearch(left, f.Entries), kernels)
	if err != nil {
		return err
	}
	a, err := nearestInRows(ctx, some, of[0], slices.Concat([]*isolate.Arithmetic{{}}, kernels, all))
	if a == nil || err != nil {
		return err
	}
	var held, rest, shown []*isolate.Evidence
	for _, e := range f.Entries {
		few := spreadOver(e)
		if few == nil {
			return nil
		}
		rows, err := rowsLeft(ctx, few, a)
		if err != nil {
			return err
		}
		if !mostOf(spreadTokens-rows, spreadTokens) {
			rest = append(rest, e)
			continue
		}
		held, shown = append(held, e), append(shown, few)
	}
	if !decides(len(held), len(f.Entries)) {
		return nil
	}
	if a.Beside != nil {
		if proven, err := provenBy(ctx, a, shown); !proven || err != nil {
			return err
		}
	}
	if f.Wrong, err = f.maskedIn(ctx, held, a); f.Wrong == nil || err != nil {
		return err
	}
	return f.mostIn(ctx, a, rest)
}

// maskedInAny tries other masks under each of some kernels, until a mask explains all entries.
func (f *Form) maskedInAny(ctx context.Context, kernels []*isolate.Arithmetic) (err error) {
	for _, a := range kernels {
		if f.Wrong, err = f.maskedIn(ctx, f.Entries, a); f.Wrong != nil || err != nil {
			return err
		}
	}
	return nil
}

// nearestInRows is the arithmetic that gives all elements of more than half of the rows in most of some entries, and of these the arithmetic that leaves
// something of fewest rows: of the few tokens of the first entry, then of the few tokens of all, then of the first entry whole. It is nil if no arithmetic
// gives so many rows of more than half of the entries, or if the account of the form ends.
func nearestInRows(ctx context.Context, few []*isolate.Evidence, whole *isolate.Evidence, all []*isolate.Arithmetic) (*isolate.Arithmetic, error) {
	for _, of := range [][]*isolate.Evidence{few[:1], few, {whole}} {
		var err error
		if all, err = nearestIn(ctx, of, all); len(all) == 0 || err != nil {
			return nil, err
		}
	}
	return all[0], nil
}

// nearestIn lists, of the arithmetics that give more than half of the rows of more than half of some entries, those that leave something of fewest rows.
func nearestIn(ctx context.Context, of []*isolate.Evidence, all []*isolate.Arithmetic) (nearest []*isolate.Arithmetic, err error) {
	fewest := math.MaxInt
	for _, a := range all {
		if of[0].Account.Spent() {
			return nil, nil
		}
		held, rows := 0, 0
		for _, e := range of {
			n, err := rowsLeft(ctx, e, a)
			if err != nil {
				return nil, err
			}
			rows += n
			if of := e.Y.Shape[isolate.TokenAxis(e.Entry)]; mostOf(of-n, of) {
				held++
			}
		}
		if !mostOf(held, len(of)) || rows > fewest {
			continue
		}
		if rows < fewest {
			nearest, fewest = nil, rows
		}
		nearest = append(nearest, a)
	}
	return nearest, nil
}

// rowsLeft counts the rows in which an arithmetic leaves an element. Orders of summation are not tried.
func rowsLeft(ctx context.Context, e *isolate.Evidence, a *isolate.Arithmetic) (int, error) {
	j, err := e.Evaluate(ctx, isolate.Evaluation{Arithmetic: a})
	if err != nil {
		return 0, err
	}
	return isolate.RowsIn(e.Trial, j.OutsideOf(nil, len(e.Y.Data))), nil
}

// mistaken takes the verdict of the prompt's passes, if they have a named mistake, and if with the mistake their arithmetics explain all entries of this form.
func (f *Form) mistaken(ctx context.Context) (bool, error) {
	if f.several == nil {
		return false, nil
	}
	g, err := f.several(ctx)
	if err != nil || g.Wrong == nil || !g.Definite {
		return false, err
	}
	for _, e := range f.Entries {
		explained, err := (&Form{Entries: []*isolate.Evidence{e}}).explainedBy(ctx, g.Own, g.Second)
		if err == nil && !explained {
			explained, err = g.hasMistake(ctx, e.Trial)
		}
		if !explained || err != nil {
			return false, err
		}
	}
	f.Verdict = g.Verdict
	return true, nil
}

// inFewTokens reports whether the elements that are left lie in less than half of the tokens of several.
func inFewTokens(e *isolate.Evidence) bool {
	at := isolate.TokenAxis(e.Entry)
	if at < 0 || at >= len(e.Y.Shape) || e.Y.Shape[at] < 2 {
		return false
	}
	inner, tokens := program.Size(e.Y.Shape[at+1:]), map[int]bool{}
	for _, i := range e.Left {
		tokens[i/inner%e.Y.Shape[at]] = true
	}
	return mostOf(e.Y.Shape[at]-len(tokens), e.Y.Shape[at])
}

// spreadOver returns the entry with a few tokens spread over the pass; nil if the pass has no further tokens.
func spreadOver(e *isolate.Evidence) *isolate.Evidence {
	at := isolate.TokenAxis(e.Entry)
	if at < 0 || at >= len(e.Y.Shape)-1 || e.Chooses() || e.Y.Terms != nil || e.Call.Some != nil || e.Y.Shape[at] <= spreadTokens {
		return nil
	}
	var keep []int
	for k := range spreadTokens {
		keep = append(keep, (2*k+1)*e.Y.Shape[at]/(2*spreadTokens))
	}
	return e.QueriesOf(at, keep)
}
