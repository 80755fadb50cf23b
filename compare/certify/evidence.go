package certify

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
)

// evidence is one entry of a form.
type evidence struct {
	*trial
	left []int // what transformers' arithmetic does not explain
}

// rowsIn counts the rows in which some elements, which ascend, lie.
func (t *trial) rowsIn(at []int) int {
	width := 1
	if n := len(t.y.Shape); n > 0 {
		width = max(t.y.Shape[n-1], 1)
	}
	n, last := 0, -1
	for _, i := range at {
		if row := i / width; row != last {
			n, last = n+1, row
		}
	}
	return n
}

// inHull reports whether some choice of roundings gives each element, in one of the orders of steps.
func (e *evidence) inHull(ctx context.Context) (bool, error) {
	_, left, err := e.hull(ctx, e.left)
	return len(left) == 0, err
}

// hull takes out of some elements what some choice of roundings gives, in one of the orders of steps, and judges by the last of
// these.
func (t *trial) hull(ctx context.Context, left []int) (j *judged, rest []int, err error) {
	all, err := t.rewrites()
	if err != nil {
		return nil, nil, err
	}
	for _, r := range all {
		if j, err = t.in(ctx, evaluated{arithmetic: &arithmetic{rewrites: r}, hull: true}); err != nil {
			return nil, nil, err
		}
		left = slices.DeleteFunc(slices.Clone(left), func(i int) bool { return j.consistent(i) })
	}
	return j, left, nil
}

// enough reports whether elements in so many rows prove something. What acts on a whole row by one number, such as a rounded root of
// a norm, is one draw a row: then the rows count.
func enough(elements, rows int, byRow bool) bool {
	if byRow {
		return rows >= proofElements
	}
	return elements >= proofElements && rows >= proofRows
}

// proven reports whether some entries together show enough that transformers' arithmetic does not give.
func proven(of []*evidence) bool {
	elements, rows := counted(of)
	return enough(elements, rows, false)
}

// counted counts the elements that are left of some entries, and the rows of these elements.
func counted(of []*evidence) (elements, rows int) {
	for _, e := range of {
		elements += len(e.left)
		rows += e.rowsIn(e.left)
	}
	return elements, rows
}

// proven reports whether an arithmetic that explains some entries shows enough in them: all of it, what it has beside what other forms
// prove, and each choice that a descent made. Of these so many are tried that one or the other happens to give what is left of a
// mistake, beside what the engine's own arithmetic gives.
func (a *arithmetic) proven(ctx context.Context, of []*evidence) (bool, error) {
	if tables, err := a.provenByTables(ctx, of); tables || err != nil {
		return tables, err
	}
	shown, err := a.shown(ctx, of)
	if !shown || err != nil {
		return false, err
	}
	if a.beside != nil {
		if little, err := a.beside.little(ctx, of, a); little || err != nil {
			return false, err
		}
	}
	for at, before := range a.flips {
		now, ok := a.at[at]
		if b := a.with(at, before); ok && now != before {
			if little, err := b.little(ctx, of, a); little || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// shown reports whether an arithmetic shows enough that transformers' does not give. An element that it leaves a choice, since a
// rounding point before it lies at a midpoint, shows nothing.
func (a *arithmetic) shown(ctx context.Context, of []*evidence) (bool, error) {
	own := &arithmetic{open: a.open}
	byRow, err := a.byRow(of, own)
	if err != nil {
		return false, err
	}
	elements, rows := 0, 0
	for _, e := range of {
		if len(e.left) == 0 && a.rewrites.Order() == 0 {
			continue
		}
		j, err := e.in(ctx, evaluated{arithmetic: a})
		if err != nil {
			return false, err
		}
		k, err := e.in(ctx, evaluated{arithmetic: own})
		if err != nil {
			return false, err
		}
		shown := slices.DeleteFunc(slices.Clone(e.left), func(i int) bool { return !j.definite(i) || !j.apart(k, i) })
		if a.rewrites.Order() != 0 && j.model == hooks.F32 {
			shown = j.only(k)
		}
		elements += len(shown)
		rows += e.rowsIn(shown)
		if enough(elements, rows, byRow) {
			return true, nil
		}
	}
	return false, nil
}

// showIn are the entries in which an arithmetic shows: those of which transformers' leaves something. An order of additions shows in the
// bits of the others, too.
func (a *arithmetic) showIn(entries, left []*evidence) []*evidence {
	if a.rewrites.Order() != 0 {
		return entries
	}
	return left
}

// only lists the elements that additions in one order give to the bit, without any bound, and those in another order do not.
func (j *judged) only(k *judged) (at []int) {
	for i, y := range j.y.Data {
		if j.x.Bound[i] == 0 && y == j.round(j.x.Data[i]) && y != k.round(k.x.Data[i]) {
			at = append(at, i)
		}
	}
	return at
}

// byRow reports whether all that two arithmetics do otherwise acts on a row of some entries' result by one number.
func (a *arithmetic) byRow(of []*evidence, b *arithmetic) (bool, error) {
	if len(of) == 0 || a.rewrites != b.rewrites {
		return false, nil
	}
	p, err := of[0].rewritten(a.rewrites)
	if err != nil {
		return false, err
	}
	x, y := a.choices(p), b.choices(p)
	own := p.Own()
	if x == nil {
		x = own
	}
	if y == nil {
		y = own
	}
	for i := range own {
		if x[i] != y[i] && !p.ByRow(i) {
			return false, nil
		}
	}
	return true, nil
}

// definite reports whether an element is known to a quarter of a unit of the model's dtype. In float32 nothing is rounded to
// less than what bounds are made of.
func (j *judged) definite(i int) bool {
	if x := j.x.Data[i]; x-x != 0 {
		return true
	} else if j.model == hooks.F32 {
		return !math.IsInf(j.x.Bound[i], 0)
	}
	return j.x.Bound[i] <= lastPlace(j.model, j.x.Data[i])/4
}

// thin reports whether what an arithmetic other than transformers' leaves of some entries is too little to accuse them of: it was
// found by what it gives, and another that gives as much may give these, too.
func (a *arithmetic) thin(ctx context.Context, of []*evidence) (bool, error) {
	if a.strict() {
		return false, nil
	}
	return a.little(ctx, of, nil)
}

// little reports whether what an arithmetic leaves of some entries is less than what proves another, nil for any.
func (a *arithmetic) little(ctx context.Context, of []*evidence, other *arithmetic) (bool, error) {
	byRow := false
	if other != nil {
		var err error
		if byRow, err = a.byRow(of, other); err != nil {
			return false, err
		}
	}
	elements, rows := 0, 0
	for _, e := range of {
		_, rest, _, err := e.strict(ctx, a)
		if err != nil {
			return false, err
		}
		elements, rows = elements+len(rest), rows+e.rowsIn(rest)
	}
	return !enough(elements, rows, byRow), nil
}

// apart reports whether two arithmetics give an element no number in common. Where their bounds overlap, what one explains and the
// other does not is a matter of the bounds. In 16 bits a number is an interval of what it was rounded from, and bounds are narrow.
func (j *judged) apart(own *judged, i int) bool {
	if x := j.x.Data[i]; j.model != hooks.F32 || x-x != 0 && own.x.Data[i]-own.x.Data[i] == 0 {
		return true
	}
	return j.disjoint(own, i)
}

// disjoint reports whether the intervals that two arithmetics give an element do not overlap, their ends rounded.
func (j *judged) disjoint(own *judged, i int) bool {
	to := func(k *judged, sign float64) float64 { return k.round(k.x.Data[i] + sign*k.x.Bound[i]) }
	return to(j, 1) < to(own, -1) || to(j, -1) > to(own, 1)
}
