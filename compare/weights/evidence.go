package weights

import (
	"context"
	"iter"
	"math"
	"slices"
)

// Codes are not the original's numbers, so that a row which stands elsewhere in the original cannot be looked up. It is looked for by
// prints, which rounding changes little, and is named where every code is right for it by [rule.judge], and is not for its own place.

// The evidence that a relation of codes needs. By chance a code of four bits is right for another number in one of three cases.
const (
	minOutside = 8   // so many codes are not right for their own place
	clearly    = 4.0 // of formats that move errors: so many times the squared error at their own place
)

// evidence tells what a relation gives from what is right where it stands.
type evidence struct {
	moves             bool
	elements, outside int     // elements of wrong groups, and the number of elements that are not right codes in their own place
	own, other        float64 // squared errors, where they stand and by the relation
}

// add counts elements from to to-1 of a block. other has the numbers of the original by the relation, and by is the rule of the relation.
func (e *evidence) add(q *rule, b *block, by *rule, other []float64, from, to int) {
	e.moves = b.moves()
	for i := from; i < to; i++ {
		x, l := q.makes(b.original[i]), b.local[i]
		e.elements++
		switch {
		case l-l != 0:
		case b.coding == nil:
			if !q.holds(l, b.original[i]) {
				e.outside++
			}
		default:
			within := b.Within(i, x)
			if math.Abs(within-l) > 1.5*b.Step[i]+b.Slack[i] || b.Step[i] == 0 && math.Abs(x-l) > b.Slack[i] {
				e.outside++
			}
			own, d := x-l, by.makes(other[i])-l
			e.own, e.other = e.own+float64(own*own), e.other+float64(d*d)
		}
	}
}

// enough reports whether the relation is needed.
func (e *evidence) enough() bool {
	if e.moves {
		return e.own > 0 && e.own >= clearly*e.other
	}
	return e.outside >= minOutside
}

// needed reports whether a view of the original that explains a tensor of codes is needed for it: the tensor might be as right, but for a
// few codes, where it stands.
func (a *pair) needed(ctx context.Context, v view, q rule) (bool, error) {
	const most = 1 << 16 // elements that are looked at
	var e evidence
	_, columns := a.local.flat()
	bad := make([]bool, columns)
	for _, r := range a.t.badRows() {
		b, x, err := a.beside(ctx, &a.sides, v, part{r, r + 1, 0, columns})
		if err != nil {
			return false, err
		}
		a.q.judge(&b, bad)
		for from, to := range b.runs {
			if slices.Contains(bad[from:to], true) {
				e.add(&a.q, &b, &q, x, from, to)
			}
		}
		if !e.moves && e.outside >= minOutside || e.elements >= most {
			break
		}
	}
	return e.enough(), nil
}

// beside reads a rectangle of both sides and of another view. The next call reuses the memory.
func (a *pair) beside(ctx context.Context, s *sides, other view, p part) (block, []float64, error) {
	b, err := s.read(ctx, p)
	if err != nil {
		return b, nil, err
	}
	x := room(&a.far, p.size())
	if err := a.second().view(x, other, p); err != nil {
		return b, nil, inTensor(other.t, err)
	}
	return b, x, nil
}

// is reports whether elements from to to-1 are x by the rule q, and whether the original's own numbers explain them less well.
func (b *block) is(q *rule, x []float64, from, to int) bool {
	some := b.some(from, to)
	var e evidence
	e.add(q, &some, q, x, 0, to-from)
	if !e.enough() {
		return false
	}
	if e.moves && to-from >= minSpread {
		return some.throughout(q, x)
	}
	some.original = x
	bad := make([]bool, to-from)
	q.judge(&some, bad)
	return !slices.Contains(bad, true)
}

// throughout reports whether every piece of minSpread elements is much nearer to x, in a format that moves errors; the last piece includes
// the remainder. A row as a whole can fit x while a part of the row does not.
func (b *block) throughout(q *rule, x []float64) bool {
	for from := 0; from+minSpread <= len(x); from += minSpread {
		to := from + minSpread
		if to+minSpread > len(x) {
			to = len(x)
		}
		var e evidence
		e.add(q, b, q, x, from, to)
		if e.own < eachRow*e.other {
			return false
		}
	}
	return true
}

// some is a part of one row of a block.
func (b *block) some(from, to int) block {
	return block{part{b.r0, b.r0 + 1, b.c0 + from, b.c0 + to}, b.local[from:to], b.original[from:to], b.coding, b.Bounds.Slice(from, to)}
}

// A format that moves errors spreads the error of one code over the codes after it. The change of a code has no bound of its own: GPTQ
// subtracts the loss of earlier columns, times factors that depend on the inputs only. The factors are large for inputs that nearly depend
// on each other, so the size of the errors is no evidence of a mistake. A relation is named if the codes are far nearer to the relation's
// numbers than to the numbers of their own place, whatever GPTQ made of both.
//
// The null hypothesis is that the codes belong to their own place. The statistic is the ratio of the two sums of squared errors over n
// elements that a relation moves, and the threshold is [clearly]. For unrelated numbers the squared error in the own place is at most twice
// the sum of squares, so the relation's squared error is at most half of the sum of squares: a cosine of 0.7, with a probability of 10^-9
// for n = 64 unrelated numbers.
const (
	minSpread = 64 // elements that such evidence needs; fewer have to be right codes, too
	eachRow   = 2  // minimum ratio of squared errors, own place to relation, in each row that the relation moves and in each piece of a row
)

// fits reports whether a rule explains a tensor whose format moves errors.
func (a *pair) fits(ctx context.Context, s *sides, q rule) (bool, error) {
	if !s.fit() {
		return false, nil
	}
	rows, columns := s.local.flat()
	look := func(parts iter.Seq[part]) (spreadSum, []bool, error) {
		own, other, moved := make([]float64, rows), make([]float64, rows), make([]bool, rows)
		for p := range parts {
			b, x, err := a.beside(ctx, s, view{t: a.original}, p)
			if err != nil {
				return spreadSum{}, nil, err
			}
			for i, l := range b.local {
				at := p.r0 + i/p.columns()
				mine, theirs := a.q.makes(x[i]), q.makes(b.original[i])
				moved[at] = moved[at] || mine != theirs
				d, e := mine-l, theirs-l
				own[at], other[at] = own[at]+float64(d*d), other[at]+float64(e*e)
			}
		}
		return sumOf(own, other, moved), moved, nil
	}
	if e, _, err := look(slices.Values(samplesOf(s.local))); err != nil || e.rows >= 4 && !(2*e.other < e.own) {
		return false, err
	}
	e, moved, err := look(s.view.parts)
	if err != nil {
		return false, err
	}
	for _, r := range a.t.badRows() {
		if !moved[r] { // wrong in its own place, and the relation does not move the row
			return false, nil
		}
	}
	return e.rows*columns >= minSpread && e.own >= clearly*e.other && e.better == e.rows, nil
}

// spreadSum is the evidence of the rows that a relation moves.
type spreadSum struct {
	own, other   float64
	rows, better int // rows, and those that are much nearer to the relation
}

func sumOf(own, other []float64, moved []bool) spreadSum {
	var s spreadSum
	for i := range own {
		if !moved[i] {
			continue
		}
		s.rows++
		s.own, s.other = s.own+own[i], s.other+other[i]
		if eachRow*other[i] < own[i] {
			s.better++
		}
	}
	return s
}

// likeSpread reports whether a sample of another tensor fits much better than the own original, for a format that moves errors.
func (a *pair) likeSpread(values [][]float64, q rule) bool {
	var own, other float64
	for i, b := range a.sample {
		for k, l := range b.local {
			d, e := a.q.makes(b.original[k])-l, q.makes(values[i][k])-l
			own, other = own+float64(d*d), other+float64(e*e)
		}
	}
	return 2*other < own
}

// unidentified reports the size of the errors of a format that moves errors, for errors without a name.
func (a *pair) unidentified() {
	groups, first := 0, -1
	_, columns := a.local.flat()
	group := min(groupOf(a.local.Coding), max(columns, 1))
	for r, n := range a.t.inRow {
		if n > 0 {
			groups += (int(n) + group - 1) / group
			if first < 0 {
				first = r
			}
		}
	}
	from := int(a.t.left[first]) / group * group
	a.row.wrong(Unidentified, LargeErrors, "the errors of %s are larger than a format that moves them makes as a rule, the first in row %d, columns %d to %d; a writer can make them, and so can a mistake that no known relation explains",
		count(groups, "group", "groups"), first, from, min(from+group, columns)-1)
}

// spreads reports whether codes that are not all the nearest may be those of a writer that moves errors, in a format that others write with the
// nearest codes: nearly every row has some of them, and the errors are centred. A mistake in some rows does not do that.
func (t *tally) spreads() bool {
	rows := 0
	for _, n := range t.besideIn {
		if n > 0 {
			rows++
		}
	}
	return t.codes.Centred() && 4*rows >= 3*len(t.besideIn)
}

// otherwise reports whether some writers of the tensor's format move errors, and the tensor is judged as of a writer that does not.
func (t *Tensor) otherwise() bool {
	return t.Coding != nil && t.Coding.MayMove() && !t.Coding.Moves()
}

// moving is a tensor of codes held to what a format that moves errors makes.
func moving(t *Tensor) *Tensor {
	moved := *t
	moved.Coding = t.Coding.Moving()
	return &moved
}
