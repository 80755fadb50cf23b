package certify

import (
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/program"
)

// A form has two accounts of work, in the units of [diagnose.DefaultWork]: one for all searches for its arithmetic, and one for all searches for a mistake in
// it, which run even if no arithmetic is found. Each search also has its own limit, so that the first search leaves something to the others. Every evaluation of
// an entry counts, also the evaluations in other orders of summation.

const (
	// arithmeticWork is what one search for the arithmetic of a form may take: a quarter of what the searches for a mistake may take.
	arithmeticWork = diagnose.DefaultWork / 4
	// formWork is what all searches for the arithmetic of a form may take together. The searches for a mistake may take arithmeticWork. Both may also evaluate
	// minEntries entries formPasses times: in a long prompt one evaluation of so many entries may take as much as formWork.
	formWork   = diagnose.DefaultWork / 2
	formPasses = 16
)

// account has the work that the searches of one form have done, and the limits. The searches run one after the other.
type account struct {
	work, most         int  // for the arithmetic
	named, mostForName int  // for a mistake
	naming             bool // a search for a mistake is running
}

// drawOn sets the limits of an account by the size of some entries, and counts the evaluations of these entries on it.
func drawOn(a *account, entries []*evidence) {
	if len(entries) == 0 {
		return
	}
	once := 0
	for k, e := range entries {
		if e.account = a; k < minEntries {
			once += timeOf(e.formula.Program, e.call)
		}
	}
	times := entries[0].i.times()
	a.most, a.mostForName = formWork*times+formPasses*once, arithmeticWork*times+formPasses*once
}

// add counts work for the search that is running. On a nil account it does nothing.
func (a *account) add(work int) {
	switch {
	case a == nil:
	case a.naming:
		a.named += work
	default:
		a.work += work
	}
}

// spent reports whether the searches for the arithmetic have reached their limit.
func (a *account) spent() bool { return a != nil && a.work >= a.most }

// onAccount runs a search for a mistake in the entries of a form. The search may take `most`, and no more than the account has left; it does not run if nothing
// is left.
func onAccount(e *evidence, most int, find func(*diagnose.Model) (*diagnose.Finding, error)) (*diagnose.Finding, error) {
	model, a := e.i.model(), e.account
	model.Work = most * e.i.times()
	if a == nil {
		return find(model)
	}
	if a.named >= a.mostForName {
		return nil, nil
	}
	model.Work = min(model.Work, a.mostForName-a.named)
	a.naming = true
	found, err := find(model)
	a.add(model.Taken())
	a.naming = false
	return found, err
}

// timeOf is about how long one evaluation of a program takes; with call.Some, of some tokens.
func timeOf(p *program.Program, call program.Call) int {
	work := p.Time() + program.StepTime*len(p.Steps)
	if some := call.Some; some != nil {
		if shape := p.Out.Shape(); some.Axis < len(shape) && shape[some.Axis] > len(some.Keep) {
			work = work / shape[some.Axis] * len(some.Keep)
		}
	}
	return work
}
