package isolate

import (
	"github.com/tracediff/tracediff/order/program"
)

// Account counts the work of the searches for one form. Only one search runs at a time.
type Account struct {
	work   int  // of the searches for the arithmetic
	Named  int  // of the searches for a mistake
	Most   int  // the limit of each of the two
	Naming bool // a search for a mistake is running
}

// Add counts work for the search that is running. On a nil account it does nothing.
func (a *Account) Add(work int) {
	switch {
	case a == nil:
	case a.Naming:
		a.Named += work
	default:
		a.work += work
	}
}

// Spent reports whether the searches for the arithmetic have reached their limit.
func (a *Account) Spent() bool { return a != nil && a.work >= a.Most }

// Ended reports whether the searches for the arithmetic or those for a mistake have reached their limit.
func (a *Account) Ended() bool { return a.Spent() || a != nil && a.Named >= a.Most }

// TimeOf is about how long one evaluation of a program takes; with call.Some, of some tokens.
func TimeOf(p *program.Program, call program.Call) int {
	return PartOf(p.Time()+program.StepTime*len(p.Steps), p, call.Some)
}

// PartOf returns the share of a program's work for some of its tokens.
func PartOf(work int, p *program.Program, some *program.Some) int {
	if some == nil {
		return work
	}
	if shape := p.Out.Shape; some.Axis < len(shape) && shape[some.Axis] > len(some.Keep) {
		work = work / shape[some.Axis] * len(some.Keep)
	}
	return work
}
