package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
)

// roundedFirst is how many tensors have to show that a dump was rounded when it was written: the first in the order that come of a matrix, which
// what is wrong further on has not reached. More than query and key, rotated or not, of which a large bias may hide what was rounded.
const roundedFirst = 5

// unrounded takes the rounding of a dump away that was computed in float32 and is stored in bfloat16 or float16: no operation of it can be
// computed from such tensors, and its own limits are those of float32. That is so where the dump does not say its dtype, the reference is
// float32, and the first tensors that come of a matrix, roundedFirst of them or all that there are, have what the reference's round to. What
// the report says of it goes into the options.
func unrounded(local, ref *capture.Trace, list *order.List, o *compare.Options) (*capture.Trace, error) {
	if local == ref || o.AB || foreign.Printed(local) || list == nil || list.Config == nil || local.Manifest().DType != 0 {
		return local, nil
	}
	stored, err := certify.ModelDType(list, local, local)
	if err != nil || stored != hooks.BF16 && stored != hooks.F16 {
		return local, err
	}
	of, err := certify.ModelDType(list, ref, ref)
	if err != nil || of != hooks.F32 {
		return local, err
	}
	rounded, computed := 0, map[string]bool{}
	for i := range list.Entries {
		e := &list.Entries[i]
		computed[e.Name] = ofMatrix(e, computed)
		l, here := local.Lookup(0, e.Name)
		r, there := ref.Lookup(0, e.Name)
		if !here || !there || !computed[e.Name] || rounded == roundedFirst {
			continue
		}
		switch is, shows, err := foreign.RoundingOf(local, l, ref, r, stored); {
		case err != nil:
			return nil, err
		case shows && !is:
			return local, nil
		case shows:
			rounded++
		}
	}
	if rounded == 0 {
		return local, nil
	}
	o.NotIsolated = computesWider(stored)
	o.Remarks = append(o.Remarks, fmt.Sprintf("the dump is stored in %s, and the port computes wider: errors are those beyond that rounding; dump float32 to have operations verified", stored))
	return foreign.Unrounded(local, ref, stored)
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
func roundedAlone(ctx context.Context, i *certify.Isolator, t *capture.Trace, list *order.List, ck *checkpoint.Checkpoint, o certify.IsolateOptions) (bool, error) {
	if t.Manifest().DType != 0 || o.DType == hooks.F32 {
		return false, nil
	}
	o.DType, o.Stored = hooks.F32, o.DType
	wide, err := certify.NewIsolator(t, list, reference.Weights(ck, hooks.F32), o)
	if err != nil {
		return false, err
	}
	return i.Rounded(ctx, wide)
}
