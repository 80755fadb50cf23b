package arithmetic

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
)

// A kernel that computes an operand again computes it as it was computed before. If the kernel of the operand itself read one of its captured operands
// before that was rounded, so does this one: of Gemma 3, compiled by inductor, the sum at the end of a layer takes the last norm of the layer in
// float32, and the mean of squares of the next norm is that of the same sum. The two are one kernel.

// rereadDeeper looks for an operand of entries that is computed again together with a captured operand of its own. Only the plainest arithmetics are
// tried: such a kernel is float32 throughout.
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
