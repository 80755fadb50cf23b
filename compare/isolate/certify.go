package isolate

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/cores"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// certifyTrial judges the entry in transformers' arithmetic, then in the arithmetic of its form. It returns nil if
// the arithmetic needs a search and the caller does not want one.
func certifyTrial(ctx context.Context, t *Trial) (*Certificate, error) {
	if c, err := certifyInKernel(ctx, t); c != nil || err != nil {
		return c, err
	}
	strict, l, err := judgeFirst(ctx, t)
	if err != nil {
		return nil, err
	}
	j, c := strict, l.Certificate()
	t.strictly = l
	left, order, err := t.Unexplained(ctx, j, &Arithmetic{}, l.outside)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 && t.right && t.Isolator.engine != nil && !t.Isolator.engine.Searched(t.Isolator.FormOf(t.Cut, t.Node)) {
		return nil, nil
	}
	c.Unequal += int64(j.X.Followed)
	c.Form, c.Arithmetic, c.Summation = op.Form(t.Entry.Op), string(Strict), order
	identified := true
	switch {
	case len(left) == 0 || t.Isolator.engine == nil || t.Formula == nil:
	case t.Chooses(): // a choice has no arithmetic, and a wrong choice has no name
		if _, rest, err := Hull(ctx, t, left); err != nil {
			return nil, err
		} else if len(rest) == 0 {
			left, identified = nil, false
		}
	default:
		k, kept, err := keepsDigits(ctx, t, c)
		if err != nil {
			return nil, err
		}
		if kept {
			j, left = k, nil
		} else if j, left, identified, err = t.Isolator.engine.Otherwise(ctx, t, c, j, left); err != nil {
			return nil, err
		}
	}
	if j != strict {
		l = Look(j)
	}
	l.say(c)
	c.settle(j, left, t.Entry, l.guessed)
	t.said, t.remaining = l, left
	if !identified && len(left) == 0 {
		c.Outcome = Unidentified
	}
	return c, Verify(ctx, t, c)
}

// Chooses reports whether the entry is a choice: whole numbers, or flags.
func (t *Trial) Chooses() bool { return !t.Entry.DTypeOf(t.Isolator.env.DType).Float() }

// Verify takes the outcome back if an operation on the way may not accuse.
func Verify(ctx context.Context, t *Trial, c *Certificate) error {
	if t.Isolator.o.Certified == nil || c.Good() && !t.Isolator.o.Thorough {
		return nil
	}
	certified, err := t.Isolator.o.Certified(ctx)
	if err != nil {
		return err
	}
	for _, n := range t.Cut.Steps {
		if form := op.Form(t.Isolator.list.At(n).Op); !certified[form] {
			c.Outcome, c.Unverified = NotCertified, form
		}
	}
	return nil
}

// Uncertified returns a form of an operation of the order that has not reproduced transformers; empty where all have. A chain
// excuses an error that accumulated only then.
func (i *Isolator) Uncertified(ctx context.Context) (string, error) {
	if i.o.Certified == nil {
		return "", nil
	}
	certified, err := i.o.Certified(ctx)
	if err != nil {
		return "", err
	}
	forms := certified.Unverified(i.list)
	if len(forms) == 0 {
		return "", nil
	}
	return slices.Min(slices.Collect(maps.Values(forms))), nil
}

// worst is the largest difference of some elements from what they should be, in units of their bounds, or of the last place where that is more: 1 for
// whole numbers. Elements without a unit do not count; it is 0 where no element has one.
func (j *Judgement) worst(of []int, fractions bool) measure.Number {
	parts := make([]float64, (len(of)+segmentElements-1)/segmentElements)
	cores.Each(len(parts), func(n int) {
		for _, i := range of[n*segmentElements : min((n+1)*segmentElements, len(of))] {
			want, place := j.Round(j.X.Data[i]), 1.0
			if fractions {
				if j.unitless(i, want) {
					continue
				}
				place = LastPlace(j.DType, want)
			}
			parts[n] = max(parts[n], measure.Ratio(math.Abs(j.Y.Data[i]-want), max(j.X.Bound[i], place)))
		}
	})
	worst := 0.0
	for _, p := range parts {
		worst = max(worst, p)
	}
	return measure.Number(worst)
}

// unitless reports whether a difference of element i is no multiple of anything: the element is masked on a side, or it should be a number so near to 0
// that the normal numbers of the dtype end before it, and so does its bound, such as the probability of a masked key. Want is R(x).
func (j *Judgement) unitless(i int, want float64) bool {
	if limit := measure.MaskLimit(j.DType, j.Model); j.Rule != order.All && (j.Y.Data[i] < limit || want < limit) {
		return true
	}
	return max(math.Abs(want), j.X.Bound[i]) < floats.SmallestNormal(j.DType)
}

// settle sets the outcome of the certificate from the unexplained elements. guessed: some unequal element has no
// bound.
func (c *Certificate) settle(j *Judgement, left []int, e *order.Entry, guessed bool) {
	c.Outside = int64(len(left))
	c.Worst = max(c.Worst, j.worst(left, e.DTypeOf(j.Model).Float()))
	c.Set = WhereOutside(left, j.Y.Shape, e.Axes)
	switch c.Outcome = c.without(guessed); {
	case len(left) > 0:
		c.Outcome, c.FirstToken = Bug, FirstToken(left, j.Y.Shape, e)
	case c.Outcome == Exact && c.Arithmetic != string(Strict): // the bits are those of another arithmetic
		c.Outcome = Rounding
	}
}

// certifyInKernel certifies an entry in the fused kernel of its form. The certificate is nil where no kernel is known, or it leaves an element.
func certifyInKernel(ctx context.Context, t *Trial) (*Certificate, error) {
	if err := t.Prepare(ctx); err != nil {
		return nil, err
	}
	if t.Isolator.engine == nil || t.Formula == nil || t.Chooses() || !rewrite.Fuses(t.Formula.Program) {
		return nil, nil
	}
	own, err := t.Isolator.engine.Kernel(ctx, t.Isolator.FormOf(t.Cut, t.Node))
	if own == nil || err != nil {
		return nil, err
	}
	j, left, order, err := t.Judge(ctx, own)
	if err != nil || len(left) > 0 {
		return nil, err
	}
	p, err := t.Rewritten(own.Rewrites)
	if err != nil {
		return nil, err
	}
	l := Look(j)
	c := l.Certificate()
	c.Form = op.Form(t.Entry.Op)
	c.Arithmetic, c.Where, c.Summation = own.Words(p, t.Isolator.env.DType), own.Where(p, t), order
	l.say(c)
	c.settle(j, nil, t.Entry, l.guessed)
	return c, Verify(ctx, t, c)
}

// WithProgram judges the entry by another program than its own in an arithmetic, also in orders of summation. It returns nil if the program leaves an element, or
// if an element is guessed.
func (t *Trial) WithProgram(ctx context.Context, p *program.Program, c program.Call, a *Arithmetic) (*Judgement, error) {
	g := *t
	g.edited, g.Call = true, c
	g.Formula = &order.Formula{Program: p, Inputs: t.Formula.Inputs, Weights: t.Formula.Weights}
	g.other = map[program.Rewrite]*order.Formula{a.Rewrites: g.Formula}
	j, rest, _, err := g.Judge(ctx, a)
	if err != nil || len(rest) > 0 || j.Guesses() {
		return nil, err
	}
	return j, nil
}

// Holding is the trial of the entry with other values, before their last rounding: those of a port with a mistake.
func (t *Trial) Holding(values []float64) *Trial {
	other := *t
	other.Y.Data = make([]float64, len(values))
	for i, x := range values {
		other.Y.Data[i] = floats.Round(t.DType, x)
	}
	return &other
}

// Supposed returns a trial of an uncaptured entry with assumed values, in the order's dtype. read reads the inputs
// of the entry.
func (i *Isolator) Supposed(n order.Node, cut *order.Plan, y program.Value, read func(order.Node) (program.Value, error)) *Trial {
	e := i.list.At(n)
	return &Trial{Isolator: i, Node: n, Cut: cut, Entry: e, Target: Target{Y: y, DType: e.DTypeOf(i.env.DType)}, Prepared: Prepared{Read: read}}
}
