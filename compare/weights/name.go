package weights

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
)

// attempt looks for the name of what is wrong with one tensor.
type attempt struct {
	*comparison
	r               *reader
	row             *Row
	local, original *Tensor
	q               rule   // by which most of a sample is right
	t               *tally // by that rule

	sample []block // of the port, with the original's elements
	spots  []part  // of wrong elements: what explains the tensor explains them

	two  *reader    // beside r
	far  []float64  // of the original, from elsewhere
	rows *catalogue // of the original's rows; nil until it is needed
	mine []print    // of the port's
}

// name finds what explains every element of a tensor that is not the original's. The first relation that does gives the name.
func (a *attempt) name(ctx context.Context, row Row) (Row, error) {
	a.row = &row
	row.at(a.t, a.local, a.original)
	if err := a.sampled(ctx); err != nil {
		return row, err
	}
	a.spotted()
	for _, try := range []func(context.Context) (bool, error){a.cutOff, a.zeroPoints, a.added, a.misread, a.scaled, a.constant, a.transposed, a.others, a.ordered, a.otherColumns, a.moved, a.inParts, a.byColumn} {
		if named, err := try(ctx); named || err != nil {
			return row, err
		}
	}
	a.unexplained()
	return row, nil
}

// sampled reads the sample.
func (a *attempt) sampled(ctx context.Context) error {
	for _, p := range samplesOf(a.local) {
		b, err := a.r.read(ctx, a.local, view{t: a.original}, p)
		if err != nil {
			return err
		}
		a.sample = append(a.sample, b.clone())
	}
	return nil
}

// spotted takes the first wrong elements of the first and of the last wrong row, with those that share their steps.
func (a *attempt) spotted() {
	_, columns := a.local.flat()
	wide := groupOf(a.local.Coding)
	rows := a.t.badRows()
	for _, r := range []int{rows[0], rows[len(rows)-1]} {
		c := int(a.t.left[r]) / wide * wide
		a.spots = append(a.spots, part{r, r + 1, c, min(c+wide, columns)})
	}
}

// explains reports whether a relation gives every element: those that are known to be wrong first, which most relations do not give.
func (a *attempt) explains(ctx context.Context, r *reader, local *Tensor, v view, q rule) (bool, error) {
	if slices.Equal(local.Shape, a.local.Shape) && local.Coding == a.local.Coding {
		if a.moves() && a.t != nil {
			return a.fits(ctx, r, local, v, q)
		}
		lr, lc := local.flat()
		if rows, columns := v.size(); lr != rows || lc != columns {
			return false, nil
		}
		if ok, err := a.every(ctx, r, local, v, q, slices.Values(a.spots)); !ok {
			return false, err
		}
		if ok, err := a.comparison.explains(ctx, r, local, v, q); !ok || err != nil || local.Coding == nil || a.t == nil || !v.moves(a.original) { // another shape tells by itself
			return ok, err
		}
		return a.needed(ctx, v, q)
	}
	return a.comparison.explains(ctx, r, local, v, q)
}

// is reports whether a relation explains the tensor, with any of the roundings that can lie between the two.
func (a *attempt) is(ctx context.Context, v view, make func(rounding) rule) (bool, rule, error) {
	for _, x := range roundingsOf(a.local, v.t) {
		q := make(x)
		ok, err := a.explains(ctx, a.r, a.local, v, q)
		if ok || err != nil {
			return ok, q, err
		}
	}
	return false, rule{}, nil
}

// added looks for the 1 of the weights of norms, and for other signs.
func (a *attempt) added(ctx context.Context) (bool, error) {
	if !a.local.DType.Float() {
		return false, nil
	}
	tries := []struct {
		scale, add float64
		kind       Kind
		what       string
	}{
		{1, 1, Folded, "1+w, where the original has w and no line of a map says folded"},
		{1, 2, FoldedTwice, "2+w, where the original has w: 1 was added twice"},
		{1, -1, Unfolded, "w-1, where the original has w: 1 was taken off"},
		{-1, 0, Negated, "-w: every sign is the other"},
	}
	if a.local.Add == 1 {
		tries[0].kind, tries[0].add, tries[0].what = Unfolded, 0, "w, where 1+w is meant"
		tries[1].what = "2+w, where 1+w is meant: 1 was added twice"
	}
	for _, try := range tries {
		original := *a.original
		if try.add != 0 {
			original.DType = hooks.F64 // a sum is a number of no narrower format
		}
		for _, x := range roundings(original.DType, a.local.DType) {
			q := rule{scale: try.scale, add: try.add, round: x}
			ok, err := a.explains(ctx, a.r, a.local, view{t: a.original}, q)
			if err != nil {
				return false, err
			}
			if ok {
				a.row.wrong(Mistake, try.kind, "%s", try.what)
				return true, nil
			}
			if a.local.Coding != nil {
				break
			}
		}
	}
	return false, nil
}

// misread looks for bits of another format, and for numbers that were rounded more than once.
func (a *attempt) misread(ctx context.Context) (bool, error) {
	if a.local.Coding != nil || !a.local.DType.Float() || !a.original.DType.Float() {
		return false, nil
	}
	for _, m := range misreadings {
		if a.original.DType != m.written {
			continue
		}
		ok, _, err := a.is(ctx, view{t: a.original}, func(x rounding) rule { return rule{scale: 1, misread: m, round: x} })
		if err != nil {
			return false, err
		}
		if ok {
			a.row.wrong(Mistake, Misread, "%s", m)
			return true, nil
		}
	}
	if a.local.DType.Float() {
		ok, q, err := a.is(ctx, view{t: a.original}, func(x rounding) rule { return plainRule(a.local.Add, x).nearly(a.local, 1) })
		if err != nil {
			return false, err
		}
		if ok {
			a.row.wrong(Mistake, Rounded, "every number is at most one step of %s from the nearest to the original's, and %s not the nearest: %s",
				q.near, count(a.t.bad, "is", "are"), either(a.t.bad*100 < a.t.elements, "a bit was changed, or these were rounded in another way", "it was rounded more than once, or not to nearest even"))
			return true, nil
		}
	}
	return false, nil
}

// constant looks for a tensor that is one number.
func (a *attempt) constant(ctx context.Context) (bool, error) {
	value := a.t.first.local
	if value != value || a.t.elements < 2 {
		return false, nil
	}
	ok, err := a.explains(ctx, a.r, a.local, view{t: a.original}, rule{scale: 0, add: value})
	if !ok || err != nil {
		return false, err
	}
	if value == 0 {
		a.row.wrong(Mistake, Zero, "every element is zero")
	} else {
		a.row.wrong(Mistake, Constant, "every element is %s, as a tensor has it that was not loaded", number(value))
	}
	return true, nil
}

// matrices are the two last axes of a tensor of three axes or more.
func matrices(t *Tensor) []*Tensor {
	if len(t.Shape) < 2 {
		return nil
	}
	if len(t.Shape) == 2 {
		return []*Tensor{t}
	}
	shape := t.Shape[len(t.Shape)-2:]
	size := shape[0] * shape[1]
	var list []*Tensor
	for at := 0; at < t.elements(); at += size {
		part := *t
		part.Shape, part.Data, part.of, part.first = shape, sectionOf(t.Data, int64(at*t.DType.Size())), t, at
		part.Instead = nil
		if t.Coding != nil {
			part.Coding = t.Coding.From(int64(at), sectionOf)
		}
		list = append(list, &part)
	}
	return list
}

// transposed looks for rows that are columns, in the two last axes. A shape that is the original's does not tell.
func (a *attempt) transposed(ctx context.Context) (bool, error) {
	mine, theirs := matrices(a.local), matrices(a.original)
	if len(mine) == 0 || len(mine) != len(theirs) {
		return false, nil
	}
	for i := range mine {
		if !slices.Equal(mine[i].Shape, []int{theirs[i].Shape[1], theirs[i].Shape[0]}) || min(mine[i].Shape[0], mine[i].Shape[1]) < 2 {
			return false, nil
		}
		found := false
		for _, x := range roundingsOf(a.local, a.original) {
			ok, err := a.explains(ctx, a.r, mine[i], view{t: theirs[i], transposed: true}, plainRule(a.local.Add, x))
			if err != nil {
				return false, err
			}
			if found = ok; found {
				break
			}
		}
		if !found {
			return false, nil
		}
	}
	a.row.wrong(Mistake, Transposed, "transposed: element [i, j] is the original's [j, i]")
	return true, nil
}

// unexplained says how far apart the two are.
func (a *attempt) unexplained() {
	if a.moves() && a.t.cosine() >= unlike {
		a.unidentified()
		return
	}
	const minElements, far = 64, 0.1
	cosine := a.t.cosine()
	if a.t.elements >= minElements && math.Abs(cosine) < far && a.t.bad*10 >= a.t.elements*9 {
		a.row.wrong(Different, Unrelated, "the values have nothing to do with the original's: cosine %.2f. Was the tensor loaded at all?", cosine)
		return
	}
	a.row.wrong(Different, Values, "%s of %d differ, relative L2 distance %.2g; no known relation explains all of them", count(a.t.bad, "element", "elements"), a.t.elements, a.t.relative())
}
