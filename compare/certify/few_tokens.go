package certify

import (
	"slices"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/program"
)

// Some mistakes in a mask show in few tokens: a window that is one key short changes only the tokens beyond the window. The engine's arithmetic gives the
// other tokens to the bit. A different arithmetic would show in most tokens. So the search tries masks before it tries arithmetics.

// spreadTokens is how many tokens, spread over an entry, an arithmetic is asked for before it is asked for all tokens.
const spreadTokens = 8

// maskedIn looks for another mask under an arithmetic that gives all elements of more than half of the tokens of each entry. The finding is nil if the
// arithmetic does not, if no mask explains all entries, and if the entries show too little. With a finding the arithmetic is that of the form.
func (f *form) maskedIn(left []*evidence, a *arithmetic) (*diagnose.Finding, error) {
	if !left[0].formula.Fuses() {
		return nil, nil
	}
	of := f.entries
	if !a.strict() {
		for _, e := range left {
			if few, err := e.givesMostOf(a); !few || err != nil {
				return nil, err
			}
		}
		var err error
		if of, err = leftUnder(f.entries, a); err != nil {
			return nil, err
		}
	}
	if elements, rows := counted(of); elements < proofOfChange || rows < proofRows || slices.ContainsFunc(of, func(e *evidence) bool { return !e.inFewTokens() }) {
		return nil, nil
	}
	entries, err := suspectsOf(of, a)
	if err != nil {
		return nil, err
	}
	model := left[0].i.model()
	model.Work = arithmeticWork * left[0].i.times()
	found, err := diagnose.FindMask(left[0].ctx, model, entries)
	if !found.Explains() || err != nil {
		return nil, err
	}
	f.own, f.made = a, found.Take()
	return found, nil
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

// givesMostOf reports whether an arithmetic gives all elements of more than half of a few tokens that are spread over the entry.
func (e *evidence) givesMostOf(a *arithmetic) (bool, error) {
	at := tokenAxis(e.entry)
	if at < 0 || at >= len(e.y.Shape)-1 || e.chooses() || e.y.Terms != nil || e.call.Some != nil || e.y.Shape[at] <= spreadTokens {
		return true, nil
	}
	t := *e.trial
	few := &evidence{&t, nil}
	t.call.Some = &program.Some{Axis: at}
	for k := range spreadTokens {
		t.call.Some.Keep = append(t.call.Some.Keep, (2*k+1)*e.y.Shape[at]/(2*spreadTokens))
	}
	few.take(at, t.call.Some.Keep)
	var err error
	_, few.left, _, err = few.strict(a)
	return few.inFewTokens(), err
}
