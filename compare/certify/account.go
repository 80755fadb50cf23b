package certify

import (
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/program"
)

// The searches for the arithmetic of one form draw on one account of work, see [diagnose.DefaultWork], and those for a mistake in it on another, so that a
// mistake is looked for where no arithmetic is found. Each search has a limit of its own too, so that the first search does not take all of an account. Every evaluation of an entry counts: also those that ask all entries of a form for an arithmetic which
// explains a few of them, and those in other orders of summation.

const (
	// arithmeticWork is what one search for the arithmetic of a form may take: a quarter of what the searches for a mistake may take.
	arithmeticWork = diagnose.DefaultWork / 4
	// formWork is what all searches for the arithmetic of a form may take, and arithmeticWork what those for a mistake may. Beside that they may evaluate as many entries as are looked at of a form of large
	// entries, minEntries, formPasses times: of a long prompt one evaluation of these may be as much as formWork.
	formWork   = diagnose.DefaultWork / 2
	formPasses = 16
)

// account is what the searches for the arithmetic of one form have taken, what those for a mistake in it have, and the most that either may take. The
// searches are made one after the other.
type account struct {
	work, most         int
	named, mostForName int
	naming             bool // what is evaluated is evaluated for a mistake
}

// drawOn lets the evaluations of some entries count on an account, which gets as much as such entries may take.
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

// add counts work. No account: nothing is counted.
func (a *account) add(work int) {
	switch {
	case a == nil:
	case a.naming:
		a.named += work
	default:
		a.work += work
	}
}

// spent reports whether the searches for the arithmetic have used all of the work that they may use.
func (a *account) spent() bool { return a != nil && a.work >= a.most }

// onAccount runs a search for a mistake in the entries of a form, with so much of what is left for mistakes at most. The search is left out if nothing is left.
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
