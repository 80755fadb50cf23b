package weights

import (
	"context"
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
	elements, outside int     // of groups that are wrong where they stand; and of them those that are no right code there
	own, other        float64 // squared errors, where they stand and by the relation
}

// add counts the elements from one to another of a block, with the numbers that the relation by has for them.
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
func (a *attempt) needed(ctx context.Context, v view, q rule) (bool, error) {
	const most = 1 << 16 // elements that are looked at
	var e evidence
	_, columns := a.local.flat()
	bad := make([]bool, columns)
	for _, r := range a.t.badRows() {
		p := part{r, r + 1, 0, columns}
		b, err := a.r.read(ctx, a.local, view{t: a.original}, p)
		if err != nil {
			return false, err
		}
		x := room(&a.far, columns)
		if err := a.second().view(x, v, p); err != nil {
			return false, inTensor(v.t, err)
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

// second is a reader beside the attempt's, for what is compared with a block of it.
func (a *attempt) second() *reader {
	if a.two == nil {
		a.two = &reader{done: a.r.done}
	}
	return a.two
}

// is reports whether the elements of a block from one to another are what x says, all of them, and not what the original has there.
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

// throughout reports whether every piece of minSpread elements of a format that moves errors, and what is left over with the last of them, is much
// nearer to x: what holds of a row as a whole may be another thing in a part of it.
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

// some are the elements of one row of a block from one to another.
func (b *block) some(from, to int) block {
	return block{part{b.r0, b.r0 + 1, b.c0 + from, b.c0 + to}, b.local[from:to], b.original[from:to], b.coding, b.Bounds.Slice(from, to)}
}
