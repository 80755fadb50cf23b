package program

import "math"

// together gives the first operand of an addition the bound of a sum of which the operands' terms are added in any order. An operand that is
// no sum is one term. from is the first element of the block.
//
// Of k terms in all, k−2 sums on the way have an error of u·M each, where M is at most the larger of the sums of the positive and of the
// negative terms of both operands; the last rounding is that of the step. The operand itself was rounded once, which the engine's is not:
// u·|x|. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2. A term, or a sum
// of some, may be subnormal, and be taken for zero: each term once at most.
func (r *run) together(s *Step, x, y operand, from int) operand {
	a, b := r.termsOf(s, 0), r.termsOf(s, 1)
	if a == nil && b == nil {
		return x
	}
	out := operand{v: x.v, e: r.zeros(len(x.e))}
	for i, e := range x.e {
		m, k, u, once := a.at(s, 0, from+i, x.v[i])
		n, l, w, other := b.at(s, 1, from+i, y.v[i])
		if u = max(u, w); k+l > 2 {
			e += float64(k+l-2)*u*(m+n)*(1+float64(k+l)*u) + once + other
		}
		if k+l > 1 {
			e += float64(k+l) * normal32
		}
		out.e[i] = e
	}
	return out
}

// termsOf are those of an operand of an addition: of a leaf that is read row by row.
func (r *run) termsOf(s *Step, k int) *Terms {
	v := s.Args[k]
	t := r.terms[v.Step]
	if t == nil || !v.Plain() || v.Off+Size(s.Shape) > len(t.Count) || Size(v.Shape) != Size(s.Shape) {
		return nil
	}
	return t
}

// at is what an element of an operand has: the sum of its terms' magnitudes at most, their number, the unit, and the rounding of the operand.
func (t *Terms) at(s *Step, arg, i int, x float64) (most float64, count int, unit, once float64) {
	if t == nil {
		return math.Abs(x), 1, 0, 0
	}
	i += s.Args[arg].Off
	if t.Count[i] > 1 {
		once = t.Unit * math.Abs(x)
	}
	return t.Most[i], t.Count[i], t.Unit, once
}
