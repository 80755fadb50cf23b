package redflag

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// seen holds the numbers of one tensor, from one reading. Masked elements count as 0: no check needs masked elements.
type seen struct {
	moments  lanes.Moments
	firstBad int64 // the first NaN or infinity
	largest  float64
	at       int64     // index of the largest absolute value
	beyond   int64     // elements beyond the limit of magnitude
	plain    []float64 // the first [plainNumbers] different numbers that are finite and neither 0 nor ±1
	narrow   []hooks.DType
}

// bad reports whether an element is NaN or infinite.
func (s *seen) bad() bool { return s.moments.NaN+s.moments.PosInf+s.moments.NegInf > 0 }

// narrower lists the types that hold fewer numbers than a dtype, among the types in which models are computed and stored.
func narrower(d hooks.DType) []hooks.DType {
	switch d {
	case hooks.F64:
		return []hooks.DType{hooks.F32}
	case hooks.F32:
		return []hooks.DType{hooks.BF16, hooks.F16}
	case hooks.BF16, hooks.F16:
		return []hooks.DType{hooks.F8E4M3, hooks.F8E5M2}
	}
	return nil
}

// survey takes the numbers of every float tensor, in the only reading of the whole file.
func survey(ctx context.Context, v *view, _ *found) error {
	for i := range v.subjects {
		s := &v.subjects[i]
		if !s.DType.Float() {
			continue
		}
		if err := surveyed(ctx, v, s); err != nil {
			return err
		}
	}
	return nil
}

// surveyed takes the numbers of one tensor.
func surveyed(ctx context.Context, v *view, s *subject) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.seen = seen{narrow: narrower(s.DType)}
	return v.t.Each(s.Record, func(at int64, x []float64) error {
		s.strip(at, x, v.limits.values.magnitude)
		return nil
	})
}

// strip takes in the elements from index at on, and counts the elements beyond a limit. strip overwrites hidden elements in x.
func (s *subject) strip(at int64, x []float64, limit float64) {
	n := &s.seen
	if s.is(roleMask | roleMasked) { // minus infinity is right in masks and masked scores
		for i, y := range x {
			if y < -floats.Largest(s.DType)/2 {
				x[i] = 0
			}
		}
	}
	n.narrow = fitting(n.narrow, x)
	if len(n.narrow) > 0 {
		n.different(x)
	}
	n.extremes(at, x)
	if n.largest > limit {
		n.count(x, limit)
	}
	n.moments.Add(x)
}

// count counts the finite elements beyond a limit.
func (n *seen) count(x []float64, limit float64) {
	for _, y := range x {
		if a := math.Abs(y); a > limit && a <= math.MaxFloat64 {
			n.beyond++
		}
	}
}

// different keeps the numbers that were not seen before. A repeated row, such as the row of a token that is fed twice, tells nothing new about the
// type.
func (n *seen) different(x []float64) {
	for _, y := range x {
		if len(n.plain) == plainNumbers {
			return
		}
		if a := math.Abs(y); a > 0 && a != 1 && a <= math.MaxFloat64 && !slices.Contains(n.plain, y) {
			n.plain = append(n.plain, y)
		}
	}
}

// extremes finds the element with the largest absolute value, and the first element that is not finite.
func (n *seen) extremes(at int64, x []float64) {
	if v := lanes.SurveyOf(x); v.Within(math.Inf(1)) && max(v.Most, -v.Least) <= n.largest {
		return // nearly every strip
	}
	bad := n.bad()
	for i, y := range x {
		a := math.Abs(y)
		switch finite := a <= math.MaxFloat64; {
		case !finite && !bad:
			n.firstBad, bad = at+int64(i), true
		case finite && a > n.largest:
			n.largest, n.at = a, at+int64(i)
		}
	}
}

// fitting keeps the types that hold all the numbers exactly. NaN and infinities fit any type.
func fitting(types []hooks.DType, x []float64) []hooks.DType {
	var kept []hooks.DType
	for _, d := range types {
		fits := true
		for _, y := range x {
			if math.Abs(y) <= math.MaxFloat64 && floats.Round(d, y) != y {
				fits = false
				break
			}
		}
		if fits {
			kept = append(kept, d)
		}
	}
	return kept
}
