package arithmetic

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
)

// A kernel that recomputes an operand repeats the operand's own kernel. If that kernel read a captured tensor
// before rounding, so does the repetition. An example is Gemma 3 compiled by inductor: the sum at the end of a
// layer reads the last norm of the layer in float32, and the mean of squares in the next norm recomputes this sum.
// Sum and norm are one kernel.

// rereadDeeper looks for an operand recomputed together with one of its own captured operands. Only the simplest
// arithmetics are tried, since such a kernel is float32 throughout.
func rereadDeeper(ctx context.Context, entries []*isolate.Evidence, roles []string) (*rereading, error) {
	for _, role := range roles {
		again, err := recomputing(ctx, entries, isolate.Operand{Role: role}, nil)
		if err != nil {
			return nil, err
		}
		if len(again) != len(entries) {
			continue
		}
		for _, inner := range rereadable(again) {
			if slices.Contains(roles, inner) {
				continue
			}
			operand := isolate.Operand{Role: role, Inner: inner}
			deeper, err := recomputing(ctx, entries, operand, nil)
			if err != nil {
				return nil, err
			}
			if len(deeper) != len(entries) {
				continue
			}
			if r, err := rereadBy(ctx, entries, deeper, operand); r != nil || err != nil {
				return r, err
			}
		}
	}
	return nil, nil
}

// fewStarts are the presets that say one thing for all sites of a program, with the program's own order of steps and of additions.
func fewStarts(starts []*isolate.Arithmetic) []*isolate.Arithmetic {
	return slices.DeleteFunc(starts, func(a *isolate.Arithmetic) bool {
		return a.Rewrites != 0 || !slices.Contains(besideOrder, a.Preset)
	})
}
