package weights

import (
	"context"
	"math"
	"slices"
)

// byColumn looks for a factor for each column: a norm, or a scale of channels, that was multiplied into the weight.
func (a *attempt) byColumn(ctx context.Context) (bool, error) {
	rows, columns := a.local.flat()
	if rows < 4 || a.local.Coding != nil || !a.local.DType.Float() || a.q.add != 0 {
		return false, nil
	}
	both, whole := make([]float64, columns), make([]float64, columns)
	for p := range (view{t: a.local}).parts {
		b, err := a.r.read(ctx, a.local, view{t: a.original}, p)
		if err != nil {
			return false, err
		}
		for i, x := range b.original {
			if y := b.local[i] * x; y-y == 0 {
				both[p.c0+i%p.columns()] += y
				whole[p.c0+i%p.columns()] += x * x
			}
		}
	}
	least, most := math.Inf(1), math.Inf(-1)
	for c := range both {
		if whole[c] > 0 {
			both[c] /= whole[c]
			least, most = min(least, both[c]), max(most, both[c])
		}
	}
	for p := range (view{t: a.local}).parts {
		b, err := a.r.read(ctx, a.local, view{t: a.original}, p)
		if err != nil {
			return false, err
		}
		for i, x := range b.original {
			q := rule{scale: both[p.c0+i%p.columns()], round: a.q.round}.nearly(a.local, 1)
			if !q.holds(b.local[i], x) {
				return false, nil
			}
		}
	}
	a.row.wrong(Mistake, ScaledColumn, "each column is the original's times a factor of its own, %s to %s: the weight of a norm, or a scale of channels, was multiplied in", number(least), number(most))
	return true, nil
}

// maxMove is how many elements a tensor may have been moved by.
const maxMove = 64

// moved looks for elements that stand some places on, as where the data were read from a wrong byte.
func (a *attempt) moved(ctx context.Context) (bool, error) {
	if a.t.elements < 4*maxMove || a.local.Add != 0 {
		return false, nil
	}
	if a.local.Coding != nil {
		return a.movedCodes(ctx)
	}
	n := a.t.elements
	l, o := *a.local, *a.original
	l.Shape, o.Shape = []int{n}, []int{n}
	const seen = 32
	at := n / 2
	probe, window := make([]float64, seen), make([]float64, seen+2*maxMove)
	if err := a.r.values(probe, &l, part{0, 1, at, at + seen}); err != nil {
		return false, inTensor(a.local, err)
	}
	if err := a.r.values(window, &o, part{0, 1, at - maxMove, at + seen + maxMove}); err != nil {
		return false, inTensor(a.original, err)
	}
	for s := 1; s <= maxMove; s++ {
		for _, by := range []int{s, -s} {
			ok := true
			for i, x := range probe {
				if ok = a.q.holds(x, window[maxMove+by+i]); !ok {
					break
				}
			}
			if !ok {
				continue
			}
			if ok, err := a.movedBy(&l, &o, by); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// movedBy checks it over the whole tensor. The elements at the end come from outside of it, and are zero, or are said to be others.
func (a *attempt) movedBy(l, o *Tensor, by int) (bool, error) {
	from, to := max(0, -by), l.elements()-max(0, by)
	_, columns := a.local.flat()
	for _, p := range a.spots { // what is known to be wrong first
		at := p.r0*columns + p.c0
		var x, y [1]float64
		if at < from || at >= to {
			continue
		}
		if err := a.r.values(x[:], l, part{0, 1, at, at + 1}); err != nil {
			return false, inTensor(l, err)
		}
		if err := a.r.values(y[:], o, part{0, 1, at + by, at + by + 1}); err != nil {
			return false, inTensor(o, err)
		}
		if !a.q.holds(x[0], y[0]) {
			return false, nil
		}
	}
	for at := from; at < to; at += chunk {
		n := min(chunk, to-at)
		x, y := room(&a.r.local, n), room(&a.r.original, n)
		if err := a.r.values(x, l, part{0, 1, at, at + n}); err != nil {
			return false, inTensor(l, err)
		}
		if err := a.r.values(y, o, part{0, 1, at + by, at + by + n}); err != nil {
			return false, inTensor(o, err)
		}
		for i := range x {
			if !a.q.holds(x[i], y[i]) {
				return false, nil
			}
		}
	}
	a.saysMoved(by)
	return true, nil
}

func (a *attempt) saysMoved(by int) {
	a.row.wrong(Mistake, Shifted, "element i is the original's element i%+d, counted through all rows: the data were read from %s too %s", by, count(abs(by), "element", "elements"), either(by > 0, "far on", "early"))
}

// movedCodes is moved for codes: by some elements, or by some groups.
func (a *attempt) movedCodes(ctx context.Context) (bool, error) {
	const groups = 8
	n, group := a.t.elements, max(1, a.local.Coding.Group)
	_, columns := a.local.flat()
	if columns%group != 0 || n < 4*group {
		return false, nil
	}
	l, o := *a.local, *a.original
	l.Shape, o.Shape = []int{n}, []int{n}
	l.Coding = a.local.Coding
	at := n / 2 / group * group
	probe := part{0, 1, at, at + group}
	for s := 1; s <= maxMove+groups; s++ {
		size := s
		if s > maxMove {
			if size = (s - maxMove) * group; size <= maxMove {
				continue
			}
		}
		for _, by := range []int{size, -size} {
			if ok, _, err := a.movedGroup(ctx, &l, &o, probe, by); err != nil {
				return false, err
			} else if !ok {
				continue
			}
			if ok, err := a.codesMovedBy(ctx, &l, &o, group, by); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// codesMovedBy checks it over the whole tensor. Groups that have elements from outside of it are said to be others.
func (a *attempt) codesMovedBy(ctx context.Context, l, o *Tensor, group, by int) (bool, error) {
	n := l.elements()
	size := max(group, chunk/group*group)
	from, to := (max(0, -by)+group-1)/group*group, (n-max(0, by))/group*group
	var all evidence
	for at := from; at < to; at += size {
		ok, e, err := a.movedGroup(ctx, l, o, part{0, 1, at, min(at+size, to)}, by)
		if !ok || err != nil {
			return false, err
		}
		all.moves = e.moves
		all.elements, all.outside, all.own, all.other = all.elements+e.elements, all.outside+e.outside, all.own+e.own, all.other+e.other
	}
	if !all.enough() {
		return false, nil
	}
	a.saysMoved(by)
	return true, nil
}

// movedGroup reports whether some groups of a flat tensor are right for the numbers so many places on, and what tells that from their own.
func (a *attempt) movedGroup(ctx context.Context, l, o *Tensor, p part, by int) (bool, evidence, error) {
	var e evidence
	if p.c0+by < 0 || p.c1+by > o.elements() {
		return false, e, nil
	}
	b, err := a.r.read(ctx, l, view{t: o}, p)
	if err != nil {
		return false, e, err
	}
	x := room(&a.far, p.size())
	if err := a.second().values(x, o, part{0, 1, p.c0 + by, p.c1 + by}); err != nil {
		return false, e, inTensor(o, err)
	}
	e.add(&a.q, &b, &a.q, x, 0, len(x))
	b.original = x
	bad := make([]bool, len(x))
	a.q.judge(&b, bad)
	return !slices.Contains(bad, true), e, nil
}
