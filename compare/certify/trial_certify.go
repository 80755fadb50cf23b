package certify

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// certify judges the entry in transformers' arithmetic, then in that of its form. It is nil where that has to be searched for, and is not to be.
func (t *trial) certify(ctx context.Context) (*Certificate, error) {
	if c, err := t.inKernel(ctx); c != nil || err != nil {
		return c, err
	}
	strict, l, err := t.first(ctx)
	if err != nil {
		return nil, err
	}
	j, c := strict, l.ofAll()
	t.strictly = l
	left, order, err := t.explained(ctx, j, &arithmetic{}, l.outside)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 && t.right && t.i.engine != nil && !t.i.engine.searched(t.i.formOf(t.cut, t.node)) {
		return nil, nil
	}
	c.Unequal += int64(j.x.Followed)
	c.Form, c.Arithmetic, c.Summation = op.Form(t.entry.Op), string(Strict), order
	identified := true
	switch {
	case len(left) == 0 || t.i.engine == nil || t.formula == nil:
	case t.chooses(): // a choice has no arithmetic, and a wrong choice has no name
		if _, rest, err := t.hull(ctx, left); err != nil {
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
		} else if j, left, identified, err = t.i.engine.otherwise(ctx, t, c, j, left); err != nil {
			return nil, err
		}
	}
	if j != strict {
		l = look(j)
	}
	l.say(c)
	c.settle(j, left, t.entry, l.guessed)
	t.said, t.remaining = l, left
	if !identified && len(left) == 0 {
		c.Outcome = Unidentified
	}
	return c, t.verify(c)
}

// chooses reports whether the entry is a choice: whole numbers, or flags.
func (t *trial) chooses() bool { return !t.entry.DTypeOf(t.i.env.DType).Float() }

// verify takes the outcome back if an operation on the way may not accuse.
func (t *trial) verify(c *Certificate) error {
	if t.i.o.Certified == nil || c.Good() && !t.i.o.Thorough {
		return nil
	}
	certified, err := t.i.o.Certified()
	if err != nil {
		return err
	}
	for _, n := range t.cut.Steps {
		if form := op.Form(t.i.list.At(n).Op); !certified[form] {
			c.Outcome, c.Unverified = NotCertified, form
		}
	}
	return nil
}

// Uncertified returns a form of an operation of the order that has not reproduced transformers; empty where all have. A chain
// excuses an error that accumulated only then.
func (i *Isolator) Uncertified() (string, error) {
	if i.o.Certified == nil {
		return "", nil
	}
	certified, err := i.o.Certified()
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
func (j *judged) worst(of []int, fractions bool) measure.Number {
	parts := make([]float64, (len(of)+segmentElements-1)/segmentElements)
	onAllCores(len(parts), func(n int) {
		for _, i := range of[n*segmentElements : min((n+1)*segmentElements, len(of))] {
			want, place := j.round(j.x.Data[i]), 1.0
			if fractions {
				if j.unitless(i, want) {
					continue
				}
				place = lastPlace(j.d, want)
			}
			parts[n] = max(parts[n], measure.Ratio(math.Abs(j.y.Data[i]-want), max(j.x.Bound[i], place)))
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
func (j *judged) unitless(i int, want float64) bool {
	if limit := measure.MaskLimit(j.d, j.model); j.rule != order.All && (j.y.Data[i] < limit || want < limit) {
		return true
	}
	return max(math.Abs(want), j.x.Bound[i]) < floats.SmallestNormal(j.d)
}

// settle gives the certificate its outcome by the elements that nothing explains. Guessed: another element differs and has no bound.
func (c *Certificate) settle(j *judged, left []int, e *order.Entry, guessed bool) {
	c.Outside = int64(len(left))
	c.Worst = max(c.Worst, j.worst(left, e.DTypeOf(j.model).Float()))
	c.Set = whereOutside(left, j.y.Shape, e.Axes)
	switch c.Outcome = c.without(guessed); {
	case len(left) > 0:
		c.Outcome, c.FirstToken = Bug, firstToken(left, j.y.Shape, e)
	case c.Outcome == Exact && c.Arithmetic != string(Strict): // the bits are those of another arithmetic
		c.Outcome = Rounding
	}
}
