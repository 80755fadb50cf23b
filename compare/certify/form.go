package certify

import (
	"context"
)

// An engine has one arithmetic for all entries of a form: their cuts' programs are the same but for numbers. So what an
// entry is explained by, when transformers' own arithmetic does not, is asked of all of them.

const (
	// An arithmetic other than transformers' has to give proofElements elements in proofRows rows that transformers' does not.
	// Null hypothesis: a mistake, for which some of the arithmetics that are tried happens to give these elements too.
	// Elements that are off by a unit have two neighbours, so that one arithmetic that is not the engine's gives all eight
	// with a chance of about 2⁻⁸ for each that it changes, and changes no other: docs/arithmetic.md has the rate that was
	// measured. One row may be off by a factor that it shares.
	proofElements = 8
	proofRows     = 2
)

// verdict is what is known of a form's arithmetic.
type verdict struct {
	// own is the arithmetic of the form, transformers' or another; nil where none holds for most entries. second is that of the
	// others, where there is one.
	own, second *arithmetic
	// unproven is a way of making tables that explains all entries, but the entries show too few elements to tell the way from a mistake. What the way explains
	// is neither right nor wrong.
	unproven *arithmetic
	// wrong is the change to the operation that explains all entries, where no arithmetic does.
	wrong mistake
	// definite: the change is one under own, and an entry may be held to it. Else the change may be under another arithmetic.
	definite bool
	// reread is the operand that the engine reads before it is rounded, where no arithmetic on captured operands holds.
	reread *rereading
	// suspects: own leaves something of entries, and second does not explain it. thin: it is too little to accuse them of.
	suspects, thin bool
	stopped        bool // a search for the arithmetic stopped at its limit
}

// explainedBy reports whether one of some arithmetics explains each entry; nil is none.
func (f *form) explainedBy(ctx context.Context, some ...*arithmetic) (bool, error) {
	for _, e := range f.entries {
		explained := false
		for _, a := range some {
			if a == nil || explained {
				continue
			}
			var err error
			if explained, err = e.givenBy(ctx, a); err != nil {
				return false, err
			}
		}
		if !explained {
			return false, nil
		}
	}
	return true, nil
}

// otherwise judges an entry that transformers' arithmetic does not explain in the arithmetic of its form. Identified is
// false for one that no arithmetic is known to explain, and that some choice of roundings may: nothing is left of it then.
func (k *forms) otherwise(ctx context.Context, t *trial, c *Certificate, strict *judged, off []int) (j *judged, left []int, identified bool, err error) {
	name := t.i.formOf(t.cut, t.node)
	f, err := k.verdictOf(ctx, name)
	if err != nil {
		return nil, nil, false, err
	}
	try := func(a *arithmetic) (bool, error) {
		now, rest, order, err := strictRead(ctx, t, a)
		if err != nil {
			return false, err
		}
		if j == nil || len(rest) < len(left) {
			j, left = now, rest
			p, err := t.rewritten(a.rewrites)
			if err != nil {
				return false, err
			}
			if a.rewrites.Kernel() > 0 { // what it reaches is its own
				own := look(now).ofAll()
				own.Form = c.Form
				*c = *own
			}
			c.Arithmetic, c.Where, c.Summation = a.words(p, t.i.env.DType), a.where(p, t), order
		}
		return len(rest) == 0, nil
	}
	for _, a := range []*arithmetic{f.own, f.second} {
		if a == nil {
			continue
		}
		if done, err := try(a); done || err != nil {
			return j, left, true, err
		}
	}
	if f.reread != nil {
		reread, err := f.reread.of(ctx, t)
		if err != nil {
			return nil, nil, false, err
		}
		_, again, rest, order, err := reread.judge(ctx, t)
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
			if done, err := try(f.reread.own); done || err != nil {
				return j, left, true, err
			}
		}
	}
	if has, err := f.hasMistake(ctx, t); err != nil {
		return nil, nil, false, err
	} else if has {
		f.wrong.Describe(c)
		if !f.definite {
			j, left = strict, off
		}
		return j, left, true, nil
	}
	if wide, err := k.computedWider(ctx); err != nil {
		return nil, nil, false, err
	} else if wide {
		if done, err := try(&arithmetic{wide: true}); done || err != nil {
			return j, left, true, err
		}
	}
	if beyond, err := k.beyondSample(ctx, f, name); err != nil {
		return nil, nil, false, err
	} else if beyond.second != nil && beyond.second != f.second {
		if done, err := try(beyond.second); done || err != nil {
			return j, left, true, err
		}
	}
	if f.own != nil && !f.thin {
		return j, left, true, nil
	}
	if f.unproven != nil {
		if all, rest, _, err := t.strict(ctx, f.unproven); len(rest) == 0 || err != nil {
			c.Arithmetic = "not known"
			return all, nil, false, err
		}
	}
	return k.within(ctx, t, f, c, strict, off)
}

// hasMistake reports whether an entry has the change that explains the entries of its form which were looked at.
func (f *verdict) hasMistake(ctx context.Context, t *trial) (bool, error) {
	if f.wrong == nil || !f.definite {
		return f.wrong != nil, nil
	}
	j, err := f.wrong.Judge(ctx, t, f.own)
	return j != nil, err
}

// within reports whether some choice of roundings gives each element. Of a large entry few elements are asked first: what no choice gives needs no more.
func (k *forms) within(ctx context.Context, t *trial, f verdict, c *Certificate, strict *judged, off []int) (j *judged, left []int, identified bool, err error) {
	if few := (&evidence{t, off}).few(); few != nil {
		if _, left, err = few.hull(ctx, few.left); err != nil || len(left) > 0 {
			return strict, off, true, err
		}
	}
	j, left, err = t.hull(ctx, off)
	if err != nil || len(left) > 0 {
		return strict, off, true, err
	}
	c.Arithmetic = "not known"
	if f.stopped {
		c.Stopped = k.goesOn()
	}
	return j, nil, false, nil
}
