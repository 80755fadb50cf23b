package certify

import (
	"github.com/tracediff/tracediff/order/program"
)

// The searches for the arithmetic of a form have a limit of work together, in the units of searchWork. The searches for a mistake in the form have
// the same limit again, so that a mistake is looked for even if the first limit is reached. Each search also has a limit of its own, which leaves work for the
// other searches. Every evaluation of an entry counts, also the evaluations in other orders of summation.

const (
	// searchWork is what the searches for one mistake may take by themselves, in the units of [program.Program.Time]: 13 to 20 seconds of one core.
	searchWork = 1 << 31
	// arithmeticWork is what one search for the arithmetic of a form may take, and mistakeWork one for a mistake in the form.
	arithmeticWork = searchWork / 4
	mistakeWork    = searchWork / 5
	// formWork and formPasses are the limit of all searches of a form: formWork, and the work of evaluating minEntries entries formPasses times. In a long
	// prompt one evaluation of so many entries may take as much as formWork.
	formWork   = 2 * arithmeticWork
	formPasses = 16
)

// account counts the work of the searches of one form. The searches run one after the other.
type account struct {
	work   int  // of the searches for the arithmetic
	named  int  // of the searches for a mistake
	most   int  // the limit of each of the two
	naming bool // a search for a mistake is running
}

// drawOn sets the limit of an account by the size of some entries, and counts the evaluations of these entries on the account.
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
	a.most = formWork*entries[0].i.times() + formPasses*once
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

// ended reports whether the searches for the arithmetic or those for a mistake have reached their limit.
func (a *account) ended() bool { return a.spent() || a != nil && a.named >= a.most }

// onAccount runs a search for a mistake in the entries of a form. The search may take `most`, and no more than the account has left; it does not run if nothing
// is left.
func onAccount(e *evidence, most int, find func(work int) (found mistake, taken int, err error)) (mistake, error) {
	a, work := e.account, most*e.i.times()
	if a == nil {
		found, _, err := find(work)
		return found, err
	}
	if a.named >= a.most { // [account.ended] tells it
		return nil, nil
	}
	a.naming = true
	found, taken, err := find(min(work, a.most-a.named))
	a.add(taken)
	a.naming = false
	return found, err
}

// timeOf is about how long one evaluation of a program takes; with call.Some, of some tokens.
func timeOf(p *program.Program, call program.Call) int {
	return partOf(p.Time()+program.StepTime*len(p.Steps), p, call.Some)
}

// partOf is the part of a program's work that some of its tokens take.
func partOf(work int, p *program.Program, some *program.Some) int {
	if some == nil {
		return work
	}
	if shape := p.Out.Shape(); some.Axis < len(shape) && shape[some.Axis] > len(some.Keep) {
		work = work / shape[some.Axis] * len(some.Keep)
	}
	return work
}
