package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
)

// An engine has one arithmetic for all entries of a form, because the programs of their cuts are equal except for
// numbers. So an explanation of one entry, other than transformers' own arithmetic, is tested on all entries of the
// form.

// Verdict is what is known of a form's arithmetic.
type Verdict struct {
	// Own is the arithmetic of the form, transformers' or another; nil if no arithmetic holds for most entries.
	// Second is the arithmetic of the remaining entries, or nil.
	Own, Second *isolate.Arithmetic
	// unproven is a way of making tables that explains all entries, but the entries show too few elements to tell the way from a mistake. What the way explains
	// is neither right nor wrong.
	unproven *isolate.Arithmetic
	// Wrong is the change to the operation that explains all entries, where no arithmetic does.
	Wrong Mistake
	// Definite: the change is one under own, and an entry may be held to it. Else the change may be under another arithmetic.
	Definite bool
	// Reread is the operand that the engine reads before it is rounded, where no arithmetic on captured operands holds.
	Reread *rereading
	// Suspects: own leaves something of entries, and second does not explain it. thin: it is too little to accuse them of.
	Suspects, thin bool
	stopped        bool // a search for the arithmetic stopped at its limit
}

// explainedBy reports whether each entry is explained by one of some arithmetics; nil arithmetics are skipped.
func (f *Form) explainedBy(ctx context.Context, some ...*isolate.Arithmetic) (bool, error) {
	for _, e := range f.Entries {
		explained := false
		for _, a := range some {
			if a == nil || explained {
				continue
			}
			var err error
			if explained, err = givenBy(ctx, e, a); err != nil {
				return false, err
			}
		}
		if !explained {
			return false, nil
		}
	}
	return true, nil
}

// hasMistake reports whether the change found in the examined entries of the form also explains this entry.
func (f *Verdict) hasMistake(ctx context.Context, t *isolate.Trial) (bool, error) {
	if f.Wrong == nil || !f.Definite {
		return f.Wrong != nil, nil
	}
	j, err := f.Wrong.Judge(ctx, t, f.Own)
	return j != nil, err
}
