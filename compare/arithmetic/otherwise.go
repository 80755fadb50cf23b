package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
)

// Otherwise judges an entry not given by transformers' arithmetic in the arithmetic of its form. identified is
// false if no known arithmetic explains the entry, but some choice of roundings may; then left is empty.
func (k *Forms) Otherwise(ctx context.Context, t *isolate.Trial, c *isolate.Certificate, strict *isolate.Judgement, off []int) (j *isolate.Judgement, left []int, identified bool, err error) {
	e := &explanation{forms: k, Trial: t, name: t.Isolator.FormOf(t.Cut, t.Node), c: c, strict: strict, off: off}
	if e.form, err = k.Verdict(ctx, e.name); err != nil {
		return nil, nil, false, err
	}
	for _, by := range []func(context.Context) (bool, error){e.byArithmetics, e.byRereading, e.byMistake, e.byDigits, e.byOtherEntries} {
		if done, err := by(ctx); done || err != nil {
			return e.j, e.left, true, err
		}
	}
	if open, err := e.byUnproven(ctx); open || err != nil {
		return e.j, nil, false, err
	}
	if e.form.Own != nil && !e.form.thin.is(len(e.left)) {
		return e.j, e.left, true, nil
	}
	open, err := e.byRoundings(ctx)
	return e.j, e.left, !open, err
}

// explanation explains an entry with elements unexplained by transformers' arithmetic.
type explanation struct {
	*isolate.Trial
	forms  *Forms
	name   isolate.FormKey
	form   Verdict
	c      *isolate.Certificate // says how the entry is explained
	strict *isolate.Judgement   // in transformers' arithmetic
	off    []int                // what that leaves

	j    *isolate.Judgement // in the arithmetic that leaves least
	left []int              // what that leaves
}

// by reports whether an arithmetic explains the entry. What leaves least is kept.
func (e *explanation) by(ctx context.Context, a *isolate.Arithmetic) (bool, error) {
	j, rest, order, err := isolate.StrictRead(ctx, e.Trial, a)
	if err != nil {
		return false, err
	}
	if e.j == nil || len(rest) < len(e.left) {
		e.j, e.left = j, rest
		p, err := e.Rewritten(a.Rewrites)
		if err != nil {
			return false, err
		}
		if a.Rewrites.Kernel() > 0 { // what it reaches is its own
			own := isolate.Look(j).Certificate()
			own.Form = e.c.Form
			*e.c = *own
		}
		e.c.Arithmetic, e.c.Where, e.c.Summation = a.Words(p, e.Isolator.Env().DType), a.Where(p, e.Trial), order
	}
	return len(rest) == 0, nil
}

// byArithmetics tries the arithmetics of the form.
func (e *explanation) byArithmetics(ctx context.Context) (bool, error) {
	for _, a := range []*isolate.Arithmetic{e.form.Own, e.form.Second} {
		if a == nil {
			continue
		}
		if done, err := e.by(ctx, a); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// byRereading tries the operand that the engine reads before it is rounded.
func (e *explanation) byRereading(ctx context.Context) (bool, error) {
	if e.form.Reread == nil {
		return false, nil
	}
	reread, err := e.form.Reread.of(ctx, e.Trial)
	if err != nil {
		return false, err
	}
	_, j, rest, order, err := reread.Judge(ctx, e.Trial)
	if err != nil {
		return false, err
	}
	if j == nil || reread.alike && len(rest) > 0 { // the entry has no such operand
		return e.by(ctx, e.form.Reread.Own)
	}
	if len(rest) > 0 && reread.thin.is(len(rest)) {
		return false, nil
	}
	e.j, e.left = j, rest
	e.c.Arithmetic, e.c.Summation = reread.words(), order
	return true, nil
}

// byMistake tries the change that explains the entries of the form which were looked at.
func (e *explanation) byMistake(ctx context.Context) (bool, error) {
	if has, err := e.form.hasMistake(ctx, e.Trial); !has || err != nil {
		return false, err
	}
	if !e.form.Definite {
		e.j, e.left = e.strict, e.off
	}
	e.c.Describe(e.form.Wrong)
	return true, nil
}

// byDigits tries inputs of more digits than were captured, where the trace was computed in more.
func (e *explanation) byDigits(ctx context.Context) (bool, error) {
	if wide, err := e.forms.ComputedWider(ctx); !wide || err != nil {
		return false, err
	}
	return e.by(ctx, &isolate.Arithmetic{Wide: true})
}

// byOtherEntries tries the arithmetic of entries of the form that were not looked at.
func (e *explanation) byOtherEntries(ctx context.Context) (bool, error) {
	beyond, err := e.forms.beyondSample(ctx, e.form, e.name)
	if err != nil || beyond.Second == nil || beyond.Second == e.form.Second {
		return false, err
	}
	return e.by(ctx, beyond.Second)
}

// byUnproven reports whether an arithmetic that the entries do not prove may explain the entry.
func (e *explanation) byUnproven(ctx context.Context) (bool, error) {
	if e.form.unproven == nil {
		return false, nil
	}
	j, rest, _, err := e.Judge(ctx, e.form.unproven)
	if len(rest) > 0 || err != nil {
		return false, err
	}
	e.c.Arithmetic, e.j = unknown, j
	return true, nil
}

// unknown is the arithmetic of an entry in a certificate that knows none.
const unknown = "not known"

// byRoundings reports whether some choice of roundings gives each element. Of a large entry few elements are asked first: what no choice gives needs no more.
func (e *explanation) byRoundings(ctx context.Context) (bool, error) {
	j, left := e.strict, e.off
	e.j, e.left = j, left
	if few := (&isolate.Evidence{Trial: e.Trial, Left: e.off}).Few(); few != nil {
		if _, rest, err := isolate.Hull(ctx, few.Trial, few.Left); err != nil || len(rest) > 0 {
			return false, err
		}
	}
	j, left, err := isolate.Hull(ctx, e.Trial, e.off)
	if err != nil || len(left) > 0 {
		return false, err
	}
	e.j, e.left, e.c.Arithmetic = j, nil, unknown
	if e.form.stopped {
		e.c.Stopped = e.forms.goesOn()
	}
	return true, nil
}
