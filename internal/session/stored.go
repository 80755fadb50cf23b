package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
)

// roundedFirst is the number of tensors required as evidence of rounding at writing time: the first results of
// matrix products in the order, since a later mistake has not reached them. It exceeds query and key, with and
// without rotation, because a large bias in these can hide the rounding.
const roundedFirst = 5

// unround treats a dump as float32 if it was computed in float32 and stored in bfloat16 or float16. Operations
// cannot be recomputed from the rounded tensors, and the right limits are the limits of float32. A dump without a
// declared dtype qualifies if the reference shows the rounding ([roundedLike]), or the dump does without a
// reference ([roundedAlone]). Against a reference of 16 bits the dump stays unchanged, and the limits of the stored
// dtype decide. The options receive the sentences for the report.
func (in *inputs) unround(ctx context.Context) error {
	local, ref, list, ck, o := in.local, in.ref, in.order.list, in.model.ck, &in.o
	if local == ref || in.asked.AB != nil || foreign.Printed(local) || list == nil || list.Config == nil || local.Manifest().DType != 0 {
		return nil
	}
	stored, err := isolate.ModelDType(list, local, local)
	if err != nil || stored != hooks.BF16 && stored != hooks.F16 {
		return err
	}
	of, err := isolate.ModelDType(list, ref, ref)
	if err != nil {
		return err
	}
	rounded := false
	if of == hooks.F32 {
		if rounded, err = roundedLike(local, ref, list, stored); err != nil {
			return err
		}
	}
	if !rounded && ck != nil {
		io := isolate.Options{DType: stored}
		i, err := compare.NewIsolator(local, list, reference.Weights(ck, stored), io)
		if err != nil {
			return nil //nolint:nilerr // the isolation of the comparison reports the reason
		}
		if rounded, err = roundedAlone(ctx, i, local, list, ck, io); err != nil {
			return err
		}
	}
	if !rounded {
		return nil
	}
	o.NotIsolated, o.Stored = computesWider(stored), stored
	if of != hooks.F32 {
		o.Remarks = append(o.Remarks, fmt.Sprintf("the dump is stored in %s, but the port computes in a wider dtype: compare it with a float32 reference to see errors below that rounding; dump float32 to have operations verified", stored))
		return nil
	}
	o.Remarks = append(o.Remarks, fmt.Sprintf("the dump is stored in %s, but the port computes in a wider dtype: errors are those beyond this rounding; dump float32 to have operations verified", stored))
	in.local, err = foreign.Unrounded(local, ref, stored)
	return err
}

// roundedLike reports whether the first roundedFirst results of matrix products in a dump, or all if there are
// fewer, equal the rounded values of a float32 reference. A tensor with wrong values counts neither way, and the
// same holds for everything computed from it.
func roundedLike(local, ref *capture.Trace, list *order.List, stored hooks.DType) (bool, error) {
	rounded, computed, wrong := 0, map[string]bool{}, map[string]bool{}
	for i := range list.Entries {
		e := &list.Entries[i]
		computed[e.Name] = ofMatrix(e, computed)
		wrong[e.Name] = slices.ContainsFunc(e.Inputs, func(in order.Ref) bool { return wrong[in.Name] })
		l, here := local.Lookup(0, e.Name)
		r, there := ref.Lookup(0, e.Name)
		if !here || !there || !computed[e.Name] || wrong[e.Name] || rounded == roundedFirst {
			continue
		}
		switch is, err := foreign.RoundingOf(local, l, ref, r, stored); {
		case err != nil:
			return false, err
		case is == foreign.NoNumbers:
			wrong[e.Name] = true
		case is == foreign.OtherNumbers:
			return false, nil
		case is == foreign.RoundedNumbers:
			rounded++
		}
	}
	return rounded > 0, nil
}

// ofMatrix reports whether an entry is computed from a matrix, the table of tokens apart: in a port of 16 bits its inputs were rounded.
func ofMatrix(e *order.Entry, before map[string]bool) bool {
	looksUp := false
	for _, in := range e.Inputs {
		if before[in.Name] {
			return true
		}
		looksUp = looksUp || in.Name == order.InputIDs
	}
	return !looksUp && slices.ContainsFunc(e.Weights, func(w order.Weight) bool { return len(w.Shape) == 2 })
}

// computesWider says why nothing of a dump can be isolated.
func computesWider(stored hooks.DType) string {
	return fmt.Sprintf("the dump is stored in %s, but the port computes in a wider dtype: the inputs of operations are not known", stored)
}

// roundedAlone reports whether a dump of 16 bits without a declared dtype was rounded at writing time. The dump is
// the only evidence.
func roundedAlone(ctx context.Context, i *compare.Isolator, t *capture.Trace, list *order.List, ck *checkpoint.Checkpoint, o isolate.Options) (bool, error) {
	if t.Manifest().DType != 0 || o.DType == hooks.F32 {
		return false, nil
	}
	o.DType, o.Stored = hooks.F32, o.DType
	wide, err := compare.NewIsolator(t, list, reference.Weights(ck, hooks.F32), o)
	if err != nil {
		return false, err
	}
	return i.Forms.Rounded(ctx, wide.Isolator)
}
