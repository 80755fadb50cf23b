package certify

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// Some mistakes in a mask show in few tokens: a window that is one key short changes only the tokens beyond the window. The engine's arithmetic gives the
// other tokens to the bit. A different arithmetic would show in most tokens. So the search tries masks before it tries arithmetics.

// spreadTokens is how many tokens, spread over an entry, an arithmetic is asked for before it is asked for all tokens.
const spreadTokens = 8

// maskedIn looks for another mask under an arithmetic that gives all elements of more than half of the tokens of each of some entries. The finding is nil
// if the arithmetic does not, if no mask explains all of these entries, and if they show too little. With a finding the arithmetic is that of the form.
func (f *form) maskedIn(ctx context.Context, of []*evidence, a *arithmetic) (mistake, error) {
	if f.mistakes == nil || !of[0].formula.Fuses() {
		return nil, nil
	}
	if !a.strict() {
		var err error
		if of, err = leftUnder(ctx, of, a); err != nil {
			return nil, err
		}
	}
	if elements, rows := counted(of); elements < proofOfChange || rows < proofRows || slices.ContainsFunc(of, func(e *evidence) bool { return !e.inFewTokens() }) {
		return nil, nil
	}
	found, err := onAccount(of[0], mistakeWork, func(work int) (mistake, int, error) { return f.mistakes.Mask(ctx, of, a, work) })
	if found == nil || err != nil {
		return nil, err
	}
	f.own, f.definite = a, found.Named()
	return found, nil
}

// maskedFirst tries other masks under transformers' arithmetic. Large entries have to be right in a few tokens that are spread over each of them.
func (f *form) maskedFirst(ctx context.Context) (err error) {
	for _, e := range f.entries {
		if few := e.spread(); few != nil && len(few.left) > 0 {
			return nil
		}
	}
	f.wrong, err = f.maskedIn(ctx, f.entries, &arithmetic{})
	return err
}

// maskedUnder looks for another mask under transformers' arithmetic, or under some known kernels, also with float32 in front of them, in more than half of
// the entries. Large entries are asked under the one arithmetic that gives most of a few tokens which are spread over them. The other entries may have the
// second arithmetic of the form.
func (f *form) maskedUnder(ctx context.Context, left []*evidence, kernels []*arithmetic) error {
	var some []*evidence
	of := samples(left)
	for _, e := range of {
		few := e.spread()
		if few == nil {
			return f.maskedInAny(ctx, kernels)
		}
		some = append(some, few)
	}
	all, err := inFront(newSearch(left, f.entries), kernels)
	if err != nil {
		return err
	}
	a, err := nearestInRows(ctx, some, of[0], slices.Concat([]*arithmetic{{}}, kernels, all))
	if a == nil || err != nil {
		return err
	}
	var held, rest, shown []*evidence
	for _, e := range f.entries {
		few := e.spread()
		if few == nil {
			return nil
		}
		rows, err := few.rowsLeft(ctx, a)
		if err != nil {
			return err
		}
		if 2*rows >= spreadTokens {
			rest = append(rest, e)
			continue
		}
		held, shown = append(held, e), append(shown, few)
	}
	if len(held) < 2 && len(rest) > 0 || 2*len(held) <= len(f.entries) {
		return nil
	}
	if a.beside != nil {
		if proven, err := a.proven(ctx, shown); !proven || err != nil {
			return err
		}
	}
	if f.wrong, err = f.maskedIn(ctx, held, a); f.wrong == nil || err != nil {
		return err
	}
	return f.mostIn(ctx, a, rest)
}

// maskedInAny tries other masks under each of some kernels, until a mask explains all entries.
func (f *form) maskedInAny(ctx context.Context, kernels []*arithmetic) (err error) {
	for _, a := range kernels {
		if f.wrong, err = f.maskedIn(ctx, f.entries, a); f.wrong != nil || err != nil {
			return err
		}
	}
	return nil
}

// nearestInRows is the arithmetic that gives all elements of more than half of the rows in most of some entries, and of these the arithmetic that leaves
// something of fewest rows: of the few tokens of the first entry, then of the few tokens of all, then of the first entry whole. It is nil if no arithmetic
// gives so many rows of more than half of the entries, or if the account of the form ends.
func nearestInRows(ctx context.Context, few []*evidence, whole *evidence, all []*arithmetic) (*arithmetic, error) {
	for _, of := range [][]*evidence{few[:1], few, {whole}} {
		var err error
		if all, err = nearestIn(ctx, of, all); len(all) == 0 || err != nil {
			return nil, err
		}
	}
	return all[0], nil
}

// nearestIn lists, of the arithmetics that give more than half of the rows of more than half of some entries, those that leave something of fewest rows.
func nearestIn(ctx context.Context, of []*evidence, all []*arithmetic) (nearest []*arithmetic, err error) {
	fewest := math.MaxInt
	for _, a := range all {
		if of[0].account.spent() {
			return nil, nil
		}
		held, rows := 0, 0
		for _, e := range of {
			n, err := e.rowsLeft(ctx, a)
			if err != nil {
				return nil, err
			}
			if rows += n; 2*n < e.y.Shape[tokenAxis(e.entry)] {
				held++
			}
		}
		if 2*held <= len(of) || rows > fewest {
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
func (e *evidence) rowsLeft(ctx context.Context, a *arithmetic) (int, error) {
	j, err := e.in(ctx, evaluated{arithmetic: a})
	if err != nil {
		return 0, err
	}
	return e.rowsIn(j.outsideOf(nil, len(e.y.Data))), nil
}

// mistaken takes the verdict of the prompt's passes, if they have a named mistake, and if with the mistake their arithmetics explain all entries of this form.
func (f *form) mistaken(ctx context.Context) (bool, error) {
	if f.several == nil {
		return false, nil
	}
	g, err := f.several(ctx)
	if err != nil || g.wrong == nil || !g.definite {
		return false, err
	}
	for _, e := range f.entries {
		explained, err := (&form{entries: []*evidence{e}}).explainedBy(ctx, g.own, g.second)
		if err == nil && !explained {
			explained, err = g.hasMistake(ctx, e.trial)
		}
		if !explained || err != nil {
			return false, err
		}
	}
	f.verdict = g.verdict
	return true, nil
}

// inFewTokens reports whether the elements that are left lie in less than half of the tokens of several.
func (e *evidence) inFewTokens() bool {
	at := tokenAxis(e.entry)
	if at < 0 || at >= len(e.y.Shape) || e.y.Shape[at] < 2 {
		return false
	}
	inner, tokens := size(e.y.Shape[at+1:]), map[int]bool{}
	for _, i := range e.left {
		tokens[i/inner%e.y.Shape[at]] = true
	}
	return 2*len(tokens) < e.y.Shape[at]
}

// spread is the entry with a few tokens that are spread over it; nil where it has no more tokens.
func (e *evidence) spread() *evidence {
	at := tokenAxis(e.entry)
	if at < 0 || at >= len(e.y.Shape)-1 || e.chooses() || e.y.Terms != nil || e.call.Some != nil || e.y.Shape[at] <= spreadTokens {
		return nil
	}
	t := *e.trial
	few := &evidence{&t, e.left}
	t.call.Some = &program.Some{Axis: at}
	for k := range spreadTokens {
		t.call.Some.Keep = append(t.call.Some.Keep, (2*k+1)*e.y.Shape[at]/(2*spreadTokens))
	}
	few.take(at, t.call.Some.Keep)
	return few
}
