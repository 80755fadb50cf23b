package arithmetic

import "github.com/tracediff/tracediff/compare/isolate"

// The searches for the arithmetic of a form have a limit of work together, in the units of searchWork. The searches for a mistake in the form have
// the same limit again, so that a mistake is looked for even if the first limit is reached. Each search also has a limit of its own, which leaves work for the
// other searches. Every evaluation of an entry counts, also the evaluations in other orders of summation.

const (
	// searchWork is what the searches for one mistake may take by themselves, in the units of [program.Program.Time]: 13 to 20 seconds of one core.
	searchWork = 1 << 31
	// hypothesisWork is what it takes to make the program of an arithmetic.
	hypothesisWork = 1 << 17
	// arithmeticWork is what one search for the arithmetic of a form may take, and mistakeWork one for a mistake in the form.
	arithmeticWork = searchWork / 4
	mistakeWork    = searchWork / 5
	// formWork and formPasses are the limit of all searches of a form: formWork, and the work of evaluating minEntries entries formPasses times. In a long
	// prompt one evaluation of so many entries may take as much as formWork.
	formWork   = 2 * arithmeticWork
	formPasses = 16
	// codedTokens is the largest number of tokens of a product with codes that are compared in pairs.
	codedTokens = 16
)

// drawOn sets the limit of an account by the size of some entries, and counts the evaluations of these entries on the account.
func drawOn(a *isolate.Account, entries []*isolate.Evidence) {
	if len(entries) == 0 {
		return
	}
	once := 0
	for k, e := range entries {
		if e.Account = a; k < MinEntries {
			once += isolate.TimeOf(e.Formula.Program, e.Call)
		}
	}
	a.Most = formWork*entries[0].Isolator.Times() + formPasses*once
}

// onAccount runs a search for a mistake in the entries of a form. The search may take `most`, and no more than the account has left; it does not run if nothing
// is left.
func onAccount(e *isolate.Evidence, most int, find func(work int) (found Mistake, taken int, err error)) (Mistake, error) {
	a, work := e.Account, most*e.Isolator.Times()
	if a == nil {
		found, _, err := find(work)
		return found, err
	}
	if a.Named >= a.Most { // Account.Ended tells it
		return nil, nil
	}
	a.Naming = true
	found, taken, err := find(min(work, a.Most-a.Named))
	a.Add(taken)
	a.Naming = false
	return found, err
}
