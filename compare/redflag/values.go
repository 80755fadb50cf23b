package redflag

import (
	"context"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/internal/floats"
)

// values looks at the numbers of every tensor, one tensor at a time.
func values(_ context.Context, v *view, f *found) error {
	for i := range v.subjects {
		s := &v.subjects[i]
		if !s.DType.Float() || s.elements() == 0 || s.is(roleGradient) { // the check gradients looks at gradients
			continue
		}
		nonFinite(v, f, s)
		oneNumber(f, s)
		tooLarge(v, f, s)
	}
	return nil
}

// nonFinite raises a flag where NaN and infinities began. Tensors computed from a flagged tensor belong to the same flag.
func nonFinite(v *view, f *found, s *subject) {
	if !f.look(NonFinite) || !s.seen.bad() {
		return
	}
	m := &s.seen.moments
	f.raise(NonFinite, s, []Number{
		number("nan", float64(m.NaN)), number("inf", float64(m.PosInf)), number("neg_inf", float64(m.NegInf)), number("elements", float64(s.elements())),
	}, "%d of %d elements are not finite (%d NaN, %d +Inf, %d -Inf), the first at %s%s",
		m.NaN+m.PosInf+m.NegInf, s.elements(), m.NaN, m.PosInf, m.NegInf, coordinates(s.Shape, s.seen.firstBad), began(v, s))
}

// began says whether the NaN or infinities of a tensor began there.
func began(v *view, s *subject) string {
	if parents := v.parents(s); len(parents) > 0 {
		return fmt.Sprintf("; it began here: what it is computed from is finite (%s)", names(parents))
	}
	if !v.t.Sequence() {
		return ""
	}
	if first := v.firstBad(); first != s {
		return fmt.Sprintf("; the first tensor of the trace that is not finite is %s, pass %d", first.name, first.pass)
	}
	return "; every tensor before it in the trace is finite"
}

// firstBad is the first tensor with NaN or infinities; nil without any.
func (v *view) firstBad() *subject {
	for i := range v.subjects {
		if s := &v.subjects[i]; s.DType.Float() && s.seen.bad() {
			return s
		}
	}
	return nil
}

// names lists places in words, three at most.
func names(places []place) string {
	text := ""
	for i, p := range places {
		if i == 3 {
			return text + fmt.Sprintf(" and %d more", len(places)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += p.name
	}
	return text
}

// oneNumber looks for tensors whose elements are all the same number.
func oneNumber(f *found, s *subject) {
	if s.is(roleMask|roleMasked|roleTable|roleBias|roleLoss) || s.elements() < minZero {
		return
	}
	// With a single key every weight is rightly 1.
	one := s.is(roleProbs) && s.dim(1) == 1
	few := s.elements() < minConstant || s.dim(1) == 1
	kinds := []Kind{Zero}
	if !few && !one && !s.is(roleParameter) {
		kinds = append(kinds, Constant)
	}
	if !f.look(kinds...) || s.seen.bad() {
		return
	}
	m := &s.seen.moments
	size := []Number{number("elements", float64(s.elements()))}
	switch {
	case m.Min != m.Max:
	case m.Min == 0:
		f.raise(Zero, s, size, "all %d elements are 0", s.elements())
	case len(kinds) > 1:
		f.raise(Constant, s, append(size, number("value", m.Min)), "all %d elements are %.6g", s.elements(), m.Min)
	}
}

// tooLarge looks for numbers that are too large.
func tooLarge(v *view, f *found, s *subject) {
	if s.is(roleMask|roleMasked|roleTable) || !f.look(Magnitude, Overflow) {
		return
	}
	n := &s.seen
	numbers, std := []Number{number("largest", n.largest)}, ""
	if x := n.moments.Summary(1).Std; x <= math.MaxFloat64 { // in float64 the squares of finite numbers may overflow
		numbers, std = append(numbers, number("std", x)), fmt.Sprintf("; the standard deviation is %.4g", x)
	}
	at := coordinates(s.Shape, n.at)
	// In trained models a few channels, and the first tokens, are thousands of times as large as the rest. A wrong scale moves all channels.
	if 2*n.beyond >= s.elements() && n.beyond > 0 {
		beyond := ""
		if half := floats.Largest(f16); n.largest > half && s.DType != f16 {
			beyond = fmt.Sprintf("; float16 ends at %.0f", half)
		}
		f.raise(Magnitude, s, append(numbers, number("limit", v.limits.values.magnitude)), "%d of %d elements are beyond ±%g, |x| reaches %.6g at %s%s%s",
			n.beyond, s.elements(), v.limits.values.magnitude, n.largest, at, std, beyond)
	}
	if most := floats.Largest(s.DType); n.largest > most*v.limits.values.overflow {
		f.raise(Overflow, s, append(numbers, number("limit", most)), "|x| reaches %.6g at %s, and %s ends at %.6g", n.largest, at, s.DType, most)
	}
}
