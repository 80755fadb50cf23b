package redflag

import (
	"context"
	"math"
	"strings"

	"github.com/tracediff/tracediff/internal/floats"
)

// causal looks for scores and masks with names of their own: tensors [.., queries, keys] with minus infinity or numbers near the lowest number of the
// dtype, in which exactly the future keys are hidden, and perhaps the first keys, by a window or padding. causal gives the tensor the role of masked
// scores and takes its numbers anew. If all visible elements are 0, the tensor is a mask too.
func causal(ctx context.Context, v *view, _ *found) error {
	for i := range v.subjects {
		s := &v.subjects[i]
		m := &s.seen.moments
		hidden := m.NegInf > 0 || m.N > 0 && m.Min < -floats.Largest(s.DType)/2
		if !s.DType.Float() || s.is(roleMask|roleMasked|roleGradient) || !hidden || m.NaN+m.PosInf > 0 || len(s.Shape) < 2 {
			continue
		}
		is, err := hidesWhatComes(ctx, v, s)
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		s.role |= roleMasked
		if err := surveyed(ctx, v, s); err != nil {
			return err
		}
		if s.seen.largest == 0 {
			s.role |= roleMask
		}
	}
	return nil
}

// hidesWhatComes reports whether every row hides all keys after its own key, shows its own key, and hides no other keys but the first. A single query
// has no later keys, so the last word of the name must contain "score" or "mask".
func hidesWhatComes(ctx context.Context, v *view, s *subject) (bool, error) {
	queries, keys := int64(s.dim(2)), s.dim(1)
	last := strings.ToLower(s.name[strings.LastIndexByte(s.name, '.')+1:])
	said := strings.Contains(last, "score") || strings.Contains(last, "mask")
	if int64(keys) < queries || keys > maxRow || queries == 1 && !said || keys < 2 {
		return false, nil
	}
	least := -floats.Largest(s.DType) / 2
	is := true
	err := v.rows(ctx, s, func(i int64, x []float64) (bool, error) {
		own := keys - int(queries) + int(i%queries)
		shown := false
		for j, y := range x {
			hidden := y < least
			is = is && (j <= own || hidden) && (j != own || !hidden) && !(hidden && shown && j <= own) && !math.IsNaN(y)
			shown = shown || !hidden
		}
		return is, nil
	})
	return is, err
}
