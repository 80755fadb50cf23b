package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
)

// An engine has one arithmetic for all entries of a form: their cuts' programs are the same but for numbers. So what an
// entry is explained by, when transformers' own arithmetic does not, is asked of all of them.

// Verdict is what is known of a form's arithmetic.
type Verdict struct {
	// Own is the arithmetic of the form, transformers' or another; nil where none holds for most entries. second is that of the
	// others, where there is one.
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

// explainedBy reports whether one of some arithmetics explains each entry; nil is none.
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

// Otherwise judges an entry that transformers' arithmetic does not explain in the arithmetic of its form. Identified is
// false for one that no arithmetic is known to explain, and that some choice of roundings may: nothing is left of it then.
func (k *Forms) Otherwise(ctx context.Context, t *isolate.Trial, c *isolate.Certificate, strict *isolate.Judgement, off []int) (j *isolate.Judgement, left []int, identified bool, err error) {
	name := t.Isolator.FormOf(t.Cut, t.Node)
	f, err := k.Verdict(ctx, name)
	if err != nil {
		return nil, nil, false, err
	}
	try := func(a *isolate.Arithmetic) (bool, error) {
		now, rest, order, err := isolate.StrictRead(ctx, t, a)
		if err != nil {
			return false, err
		}
		if j == nil || len(rest) < len(left) {
			j, left = now, rest
			p, err := t.Rewritten(a.Rewrites)
			if err != nil {
				return false, err
			}
			if a.Rewrites.Kernel() > 0 { // what it reaches is its own
				own := isolate.Look(now).Certificate()
				own.Form = c.Form
				*c = *own
			}
			c.Arithmetic, c.Where, c.Summation = a.Words(p, t.Isolator.Env().DType), a.Where(p, t), order
		}
		return len(rest) == 0, nil
	}
	for _, a := range []*isolate.Arithmetic{f.Own, f.Second} {
		if a == nil {
			continue
		}
		if done, err := try(a); done || err != nil {
			return j, left, true, err
		}
	}
	if f.Reread != nil {
		reread, err := f.Reread.of(ctx, t)
		if err != nil {
			return nil, nil, false, err
		}
		_, again, rest, order, err := reread.Judge(ctx, t)
		if err != nil {
			return nil, nil, false, err
		}
		if reread.alike && len(rest) > 0 {
			again = nil
		}
		if again != nil && (len(rest) == 0 || !reread.thin) {
			c.Arithmetic, c.Summation = reread.words(), order
			return again, rest, true, nil
		}
		if again == nil { // the entry has no such operand
			if done, err := try(f.Reread.Own); done || err != nil {
				return j, left, true, err
			}
		}
	}
	if has, err := f.hasMistake(ctx, t); err != nil {
		return nil, nil, false, err
	} else if has {
		c.Describe(f.Wrong)
		if !f.Definite {
			j, left = strict, off
		}
		return j, left, true, nil
	}
	if wide, err := k.ComputedWider(ctx); err != nil {
		return nil, nil, false, err
	} else if wide {
		if done, err := try(&isolate.Arithmetic{Wide: true}); done || err != nil {
			return j, left, true, err
		}
	}
	if beyond, err := k.beyondSample(ctx, f, name); err != nil {
		return nil, nil, false, err
	} else if beyond.Second != nil && beyond.Second != f.Second {
		if done, err := try(beyond.Second); done || err != nil {
			return j, left, true, err
		}
	}
	if f.Own != nil && !f.thin {
		return j, left, true, nil
	}
	if f.unproven != nil {
		if all, rest, _, err := t.Judge(ctx, f.unproven); len(rest) == 0 || err != nil {
			c.Arithmetic = "not known"
			return all, nil, false, err
		}
	}
	return k.within(ctx, t, f, c, strict, off)
}

// hasMistake reports whether an entry has the change that explains the entries of its form which were looked at.
func (f *Verdict) hasMistake(ctx context.Context, t *isolate.Trial) (bool, error) {
	if f.Wrong == nil || !f.Definite {
		return f.Wrong != nil, nil
	}
	j, err := f.Wrong.Judge(ctx, t, f.Own)
	return j != nil, err
}

// within reports whether some choice of roundings gives each element. Of a large entry few elements are asked first: what no choice gives needs no more.
func (k *Forms) within(ctx context.Context, t *isolate.Trial, f Verdict, c *isolate.Certificate, strict *isolate.Judgement, off []int) (j *isolate.Judgement, left []int, identified bool, err error) {
	if few := (&isolate.Evidence{Trial: t, Left: off}).Few(); few != nil {
		if _, left, err = isolate.Hull(ctx, few.Trial, few.Left); err != nil || len(left) > 0 {
			return strict, off, true, err
		}
	}
	j, left, err = isolate.Hull(ctx, t, off)
	if err != nil || len(left) > 0 {
		return strict, off, true, err
	}
	c.Arithmetic = "not known"
	if f.stopped {
		c.Stopped = k.goesOn()
	}
	return j, nil, false, nil
}
