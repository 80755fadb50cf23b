package isolate

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
)

// Evidence is one entry of a form.
type Evidence struct {
	*Trial
	Left []int // what transformers' arithmetic does not explain
}

// RowsIn counts the rows in which some elements, which ascend, lie.
func RowsIn(t *Trial, at []int) int {
	width := 1
	if n := len(t.Y.Shape); n > 0 {
		width = max(t.Y.Shape[n-1], 1)
	}
	n, last := 0, -1
	for _, i := range at {
		if row := i / width; row != last {
			n, last = n+1, row
		}
	}
	return n
}

// InHull reports whether some choice of roundings gives each element, in one of the orders of steps.
func (e *Evidence) InHull(ctx context.Context) (bool, error) {
	_, left, err := Hull(ctx, e.Trial, e.Left)
	return len(left) == 0, err
}

// Hull takes out of some elements what some choice of roundings gives, in one of the orders of steps, and judges by the last of
// these.
func Hull(ctx context.Context, t *Trial, left []int) (j *Judgement, rest []int, err error) {
	all, err := t.Rewrites()
	if err != nil {
		return nil, nil, err
	}
	for _, r := range all {
		if j, err = t.Evaluate(ctx, Evaluation{Arithmetic: &Arithmetic{Rewrites: r}, Hull: true}); err != nil {
			return nil, nil, err
		}
		left = slices.DeleteFunc(slices.Clone(left), func(i int) bool { return j.Consistent(i) })
	}
	return j, left, nil
}

// Only lists the elements equal to the bit in one order of additions (j) and unequal in the order of k, for
// elements with a bound of 0 in j.
func (j *Judgement) Only(k *Judgement) (at []int) {
	for i, y := range j.Y.Data {
		if j.X.Bound[i] == 0 && y == j.Round(j.X.Data[i]) && y != k.Round(k.X.Data[i]) {
			at = append(at, i)
		}
	}
	return at
}

// Definite reports whether an element is known to a quarter of a unit of the model's dtype. In float32 nothing is rounded to
// less than what bounds are made of.
func (j *Judgement) Definite(i int) bool {
	if x := j.X.Data[i]; x-x != 0 {
		return true
	} else if j.Model == hooks.F32 {
		return !math.IsInf(j.X.Bound[i], 0)
	}
	return j.X.Bound[i] <= LastPlace(j.Model, j.X.Data[i])/4
}

// Apart reports whether two arithmetics give an element no number in common. Where their bounds overlap, what one explains and the
// other does not is a matter of the bounds. In 16 bits a number is an interval of what it was rounded from, and bounds are narrow.
func (j *Judgement) Apart(own *Judgement, i int) bool {
	if x := j.X.Data[i]; j.Model != hooks.F32 || x-x != 0 && own.X.Data[i]-own.X.Data[i] == 0 {
		return true
	}
	return j.Disjoint(own, i)
}

// Disjoint reports whether the intervals that two arithmetics give an element do not overlap, their ends rounded.
func (j *Judgement) Disjoint(own *Judgement, i int) bool {
	to := func(k *Judgement, sign float64) float64 { return k.Round(k.X.Data[i] + sign*k.X.Bound[i]) }
	return to(j, 1) < to(own, -1) || to(j, -1) > to(own, 1)
}
