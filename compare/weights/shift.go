package weights

import (
	"context"
	"slices"
)

// maxMove is how many elements a tensor may have been moved by.
const maxMove = 64

// shift is the search for elements that stand some places on.
type shift struct {
	*pair
	flat  sides // counted through all rows
	group int   // so many elements are looked at together
}

// shifted looks for elements that stand some places on, as where the data were read from a wrong byte: by some elements, or by some groups of
// codes.
func shifted(ctx context.Context, a *pair) (bool, error) {
	const groups, seen = 8, 32
	n, group := a.t.elements, groupOf(a.local.Coding)
	s := shift{a, sides{a.r, shaped(a.local, []int{n}), view{t: shaped(a.original, []int{n})}}, group}
	sizes := make([]int, maxMove)
	for i := range sizes {
		sizes[i] = i + 1
	}
	at, probe := n/2/group*group, seen
	if a.coded() {
		probe = group
		for i := 1; i <= groups; i++ {
			if i*group > maxMove {
				sizes = append(sizes, i*group)
			}
		}
	}
	for _, size := range sizes {
		for _, by := range []int{size, -size} {
			if ok, _, err := s.right(ctx, part{0, 1, at, at + probe}, by); err != nil {
				return false, err
			} else if !ok {
				continue
			}
			if ok, err := s.everywhere(ctx, by); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// everywhere names a shift by a fixed number of elements if the shift explains the whole tensor. It checks the known wrong elements first.
// Elements at the ends, whose source lies outside of the tensor, are not checked.
func (s *shift) everywhere(ctx context.Context, by int) (bool, error) {
	n, group := s.flat.local.elements(), s.group
	_, columns := s.local.flat()
	size := max(group, chunk/group*group)
	from, to := (max(0, -by)+group-1)/group*group, (n-max(0, by))/group*group
	if !s.coded() {
		for _, p := range s.spots {
			at := p.r0*columns + p.c0
			if at < from || at >= to {
				continue
			}
			if ok, _, err := s.right(ctx, part{0, 1, at, at + 1}, by); !ok {
				return false, err
			}
		}
	}
	var all evidence
	for at := from; at < to; at += size {
		ok, e, err := s.right(ctx, part{0, 1, at, min(at+size, to)}, by)
		if !ok || err != nil {
			return false, err
		}
		all.moves = e.moves
		all.elements, all.outside, all.own, all.other = all.elements+e.elements, all.outside+e.outside, all.own+e.own, all.other+e.other
	}
	if s.coded() && !all.enough() {
		return false, nil
	}
	s.row.wrong(Mistake, Shifted, "element i is the original's element i%+d, counted through all rows: the data were read from %s too %s", by, count(abs(by), "element", "elements"), either(by > 0, "far on", "early"))
	return true, nil
}

// right reports whether some elements are right for the numbers so many places on, and what tells that from their own.
func (s *shift) right(ctx context.Context, p part, by int) (bool, evidence, error) {
	var e evidence
	if p.c0+by < 0 || p.c1+by > s.flat.local.elements() {
		return false, e, nil
	}
	b, err := s.flat.read(ctx, p)
	if err != nil {
		return false, e, err
	}
	x := room(&s.far, p.size())
	if err := s.second().values(x, s.flat.view.t, part{0, 1, p.c0 + by, p.c1 + by}); err != nil {
		return false, e, inTensor(s.original, err)
	}
	e.add(&s.q, &b, &s.q, x, 0, len(x))
	b.original = x
	bad := make([]bool, len(x))
	s.q.judge(&b, bad)
	return !slices.Contains(bad, true), e, nil
}

// identity is the order in which everything stands in its own place.
func identity(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// moved returns the first place with the content of another place, and the number of such places.
func moved(order []int32) (first, n int) {
	for i := len(order) - 1; i >= 0; i-- {
		if int(order[i]) != i {
			first, n = i, n+1
		}
	}
	return first, n
}
