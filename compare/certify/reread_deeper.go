package certify

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/order"
)

// A kernel that computes an operand again computes it as it was computed before. If the kernel of the operand itself read one of its captured operands
// before that was rounded, so does this one: of Gemma 3, compiled by inductor, the sum at the end of a layer takes the last norm of the layer in
// float32, and the mean of squares of the next norm is that of the same sum. The two are one kernel.

// rereadDeeper looks for an operand of entries that is computed again together with a captured operand of its own. Only the plainest arithmetics are
// tried: such a kernel is float32 throughout.
func rereadDeeper(ctx context.Context, entries []*evidence, roles []string) (*rereading, error) {
	for _, role := range roles {
		again, err := recomputing(ctx, entries, operand{role: role}, nil)
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
			operand := operand{role, inner}
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

// operandOf is the captured operand of an entry that has a role in the same pass. ok is false if the entry has none, or cannot be computed from what was
// captured.
func (i *Isolator) operandOf(n order.Node, role string) (order.Node, bool) {
	cut, err := i.list.Cut(i.has, n)
	if err != nil {
		return order.Node{}, false
	}
	at := slices.IndexFunc(cut.Leaves, func(leaf order.Node) bool { return leaf.Pass == n.Pass && roleOf(i.list.At(leaf)) == role })
	if at < 0 {
		return order.Node{}, false
	}
	return cut.Leaves[at], true
}

// fewStarts are the presets that say one thing for all sites of a program, with the program's own order of steps and of additions.
func fewStarts(starts []*arithmetic) []*arithmetic {
	return slices.DeleteFunc(starts, func(a *arithmetic) bool { return a.rewrites != 0 || !slices.Contains(besideOrder, a.preset) })
}
