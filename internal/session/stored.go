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

// roundedFirst is how many tensors have to show that a dump was rounded when it was written: the first in the order that come of a matrix, which
// what is wrong further on has not reached. More than query and key, rotated or not, of which a large bias may hide what was rounded.
const roundedFirst = 5

// unrounded takes the rounding of a dump away that was computed in float32 and is stored in bfloat16 or float16: no operation of it can be
// computed from such tensors, and its own limits are those of float32. That is so where the dump does not say its dtype, and either the reference
// shows it ([roundedLike]) or the dump alone does ([roundedAlone]). Against a reference of 16 bits the dump stays as it is, and the limits of that
// dtype decide. What the report says of it goes into the options. ck may be nil.
func unrounded(ctx context.Context, local, ref *capture.Trace, list *order.List, ck *checkpoint.Checkpoint, o *compare.Options) (*capture.Trace, error) {
	if local == ref || o.AB || foreign.Printed(local) || list == nil || list.Config == nil || local.Manifest().DType != 0 {
		return local, nil
	}
	stored, err := isolate.ModelDType(list, local, local)
	if err != nil || stored != hooks.BF16 && stored != hooks.F16 {
		return local, err
	}
	of, err := isolate.ModelDType(list, ref, ref)
	if err != nil {
		return local, err
	}
	rounded := false
	if of == hooks.F32 {
		if rounded, err = roundedLike(local, ref, list, stored); err != nil {
			return nil, err
		}
	}
	if !rounded && ck != nil {
		io := isolate.Options{DType: stored}
		i, err := compare.NewIsolator(local, list, reference.Weights(ck, stored), io)
		if err != nil {
			return local, nil //nolint:nilerr // it cannot be isolated, and what keeps it from that is said where it is tried
		}
		if rounded, err = roundedAlone(ctx, i, local, list, ck, io); err != nil {
			return nil, err
		}
	}
	if !rounded {
		return local, nil
	}
	o.NotIsolated, o.Stored = computesWider(stored), stored
	if of != hooks.F32 {
		o.Remarks = append(o.Remarks, fmt.Sprintf("the dump is stored in %s, and the port computes wider: compare it with a float32 reference to see errors below that rounding; dump float32 to have operations verified", stored))
		return local, nil
	}
	o.Remarks = append(o.Remarks, fmt.Sprintf("the dump is stored in %s, and the port computes wider: errors are those beyond that rounding; dump float32 to have operations verified", stored))
	return foreign.Unrounded(local, ref, stored)
}

// roundedLike reports whether the first tensors of a dump that come of a matrix, roundedFirst of them or all that there are, have what those of a
// float32 reference round to. One that is wrong in any arithmetic says nothing, and neither does what is computed from it.
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
	return fmt.Sprintf("the dump is stored in %s, and the port computes wider: what operations were given is not known", stored)
}

// roundedAlone reports whether a dump of 16 bits, which does not say its dtype, was rounded when it was written, by the dump alone.
func roundedAlone(ctx context.Context, i *compare.Isolator, t *capture.Trace, list *order.List, ck *checkpoint.Checkpoint, o isolate.Options) (bool, error) {
	if t.Manifest().DType != 0 || o.DType == hooks.F32 {
		return false, nil
	}
	o.DType, o.Stored = hooks.F32, o.DType
	wide, err := compare.NewIsolator(t, list, reference.Weights(ck, hooks.F32), o)
	if err != nil {
		return false, err
	}
	return i.Rounded(ctx, wide)
}
