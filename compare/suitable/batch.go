package suitable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/order"
)

// batch returns the evidence for several sequences in the first pass of a trace, or "". The evidence is the shape
// [B, T] of the token ids. If the ids are missing or have another shape, it is the shape of all tensors: each has B
// in front of the order's shape for one sequence, [B, T, ...], and more than one token. Tensors [T, 1, ...] have
// another layout.
func batch(t *capture.Trace, list *order.List) string {
	if r, ok := t.Lookup(0, order.InputIDs); ok && len(r.Shape) == 2 && r.Shape[0] > 1 {
		return fmt.Sprintf("%d sequences, and only one can be compared: the shape of %s is %v", r.Shape[0], order.InputIDs, r.Shape)
	}
	var first capture.Record
	n, tokens, reads := 0, 0, fromTokens(list)
	for i := range list.Entries {
		e := &list.Entries[i]
		r, ok := t.Lookup(0, e.Name)
		if _, own := t.Manifest().Axes[e.Name]; !ok || own || len(r.Shape) != len(e.Shape) || !strings.HasPrefix(strings.ReplaceAll(e.Axes, " ", ""), "bt") {
			continue
		}
		if e.Shape[0] != 1 || !reads[e.Name] { // a batch may have one row of positions, and one row of each table of positions
			continue
		}
		if n++; n == 1 {
			first = r
		}
		if tokens = max(tokens, r.Shape[1]); r.Shape[0] < 2 || r.Shape[0] != first.Shape[0] {
			return ""
		}
	}
	if n < 2 || tokens < 2 {
		return ""
	}
	return fmt.Sprintf("%[1]d sequences, and only one can be compared: the first axis of all %[2]d tensors with tokens is %[1]d, such as %[3]s %[4]v", first.Shape[0], n, first.Key, first.Shape)
}

// fromTokens are the entries that are computed from the token ids.
func fromTokens(list *order.List) map[string]bool {
	reads := map[string]bool{}
	for i := range list.Entries {
		e := &list.Entries[i]
		reads[e.Name] = slices.ContainsFunc(e.Inputs, func(in order.Ref) bool { return in.Name == order.InputIDs || reads[in.Name] })
	}
	return reads
}

// paddedBeside finds the side whose row has padding while the row of the other side has none, and says why. The ids of a padded row are the ids of the
// other side and a run of one id at one end. The run has several tokens, or the configuration's id for padding. The reason is empty if neither
// side has such a row; the error is that of reading the ids.
func paddedBeside(traces [2]*capture.Trace, o Options) (side int, why string, err error) {
	var ids [2][]int64
	for i, t := range traces {
		var ok bool
		if ids[i], ok, err = sides.Integers(t, 0, order.InputIDs); err != nil || !ok || len(ids[i]) == 0 {
			return 0, "", err
		}
	}
	if len(ids[sides.Reference]) > len(ids[sides.Local]) {
		side = sides.Reference
	}
	long, short := ids[side], ids[1-side]
	more := len(long) - len(short)
	if more == 0 {
		return 0, "", nil
	}
	has := func(extra []int64, next int64) bool {
		id := extra[0]
		known := o.Order.Config.Tokens
		isPAD := known.PAD >= 0 && id == int64(known.PAD) && known.PAD != known.BOS && !slices.Contains(known.EOS, known.PAD)
		return (isPAD || more > 1 && id != next) && !slices.ContainsFunc(extra, func(x int64) bool { return x != id })
	}
	other := sides.NamesOf(o.Mode)[1-side].Trace
	switch {
	case slices.Equal(long[more:], short) && has(long[:more], short[0]):
		return side, fmt.Sprintf("it begins with %s of id %d, and the rest equals %s", amount.Of(more, "token"), long[0], other), nil
	case slices.Equal(long[:len(short)], short) && has(long[len(short):], short[len(short)-1]):
		return side, fmt.Sprintf("it ends with %s of id %d, and the rest equals %s", amount.Of(more, "token"), long[len(long)-1], other), nil
	}
	return 0, "", nil
}
