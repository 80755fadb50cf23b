package suitable

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/keyorder"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/order"
)

// attentionMask is what callers of transformers say of each token of a row: 1, or 0 for padding.
const attentionMask = "attention_mask"

// oneSequence returns an [*sides.UnsuitableError] for a trace of several sequences, and for a row with padding: the order describes one sequence
// without padding. An A/B comparison computes nothing, and takes any rows.
func oneSequence(traces [2]*capture.Trace, o Options) error {
	if o.Order == nil || o.Order.Config == nil || o.Mode == sides.AB {
		return nil
	}
	names := sides.NamesOf(o.Mode)
	for i, t := range traces {
		if i > 0 && t == traces[0] {
			break
		}
		if why := batch(t, o.Order); why != "" {
			return &sides.UnsuitableError{What: "rows", Reason: names[i].Trace + " has " + why, Hint: capture.OneSequence}
		}
		why, err := padding(t, o.Order)
		if err != nil {
			return err
		}
		if why != "" {
			return padded(names[i].Trace, why)
		}
	}
	if side, why, err := paddedBeside(traces, o); why != "" || err != nil {
		return cmp.Or(err, padded(names[side].Trace, why))
	}
	return nil
}

func padded(trace, why string) error {
	return &sides.UnsuitableError{
		What: "rows", Reason: fmt.Sprintf("%s has a row with padding: %s", trace, why),
		Hint: "run the port on the tokens without padding: one sequence that is as long as its text",
	}
}

// Wrong is the first divergence, an entry with a wrong result from right inputs.
type Wrong struct {
	Key, Name   string
	Certificate *isolate.Certificate
	Finding     *diagnose.Finding
}

// PaddedAsFound returns an [*sides.UnsuitableError] if the row of the local trace begins or ends with one id several times and an entry of pass 0 that is
// wrong shows the effect of padding: keys in front that are masked for every query, or wrong rows of the last tokens only. A dump of module outputs
// shows padding in no other way.
func PaddedAsFound(local *capture.Trace, name string, list *order.List, found Wrong) error {
	ids, ok, err := sides.Integers(local, 0, order.InputIDs)
	if err != nil || !ok || len(ids) == 0 {
		return err
	}
	front, back := runs(ids)
	c, n := found.Certificate, len(ids)
	behind := n - c.FirstToken // the tokens that are wrong; the last of the text may have the id of padding
	switch f := found.Finding; {
	case front > 1 && f.FirstKeysMasked(front):
		return padded(name, fmt.Sprintf("it begins with %d tokens of id %d, and they are masked for every query", front, ids[0]))
	case back > 1 && c.Outcome == isolate.Bug && readsKeys(list, found.Name) && c.FirstToken >= 0 && behind > 1 && (behind == back || behind == back-1):
		return padded(name, fmt.Sprintf("it ends with %d tokens of id %d, and %s is a different operation for these tokens only", behind, ids[n-1], found.Key))
	}
	return nil
}

// readsKeys reports whether an entry is computed from the keys of its layer.
func readsKeys(list *order.List, name string) bool {
	at := list.Index(name)
	if at < 0 {
		return false
	}
	layer, open, seen := list.Entries[at].Layer, []int{at}, map[int]bool{}
	for len(open) > 0 {
		e := &list.Entries[open[len(open)-1]]
		open = open[:len(open)-1]
		if e.Layer == layer && keyorder.KeyAxis(e) >= 0 {
			return true
		}
		for _, in := range e.Inputs {
			if k := list.Index(in.Name); k >= 0 && !in.Prev && !seen[k] && list.Entries[k].Layer == layer {
				seen[k] = true
				open = append(open, k)
			}
		}
	}
	return false
}

// padding says what shows that the row of a trace has padding; empty where nothing does.
func padding(t *capture.Trace, list *order.List) (string, error) {
	for _, find := range []func(*capture.Trace, *order.List, int) (string, error){hiddenTokens, restartedPositions, maskedEnds} {
		for pass := range sides.Passes(t) {
			if why, err := find(t, list, pass); why != "" || err != nil {
				return why, err
			}
		}
	}
	return "", nil
}

// hiddenTokens finds an attention mask [1, n] that hides a token.
func hiddenTokens(t *capture.Trace, _ *order.List, pass int) (string, error) {
	r, ok := t.Lookup(pass, attentionMask)
	if !ok || len(r.Shape) != 2 || r.Shape[0] != 1 || measure.Elements(r.Shape) > sides.MaxIDs {
		return "", nil
	}
	v, err := t.Value(pass, attentionMask)
	if err != nil {
		return "", err
	}
	hidden := 0
	for _, x := range v.Data {
		if x == 0 {
			hidden++
		}
	}
	if hidden == 0 || hidden == len(v.Data) {
		return "", nil
	}
	return fmt.Sprintf("%s is 0 for %d of %s", r.Key, hidden, amount.Of(len(v.Data), "token")), nil
}

// restartedPositions finds positions that were made from an attention mask: all padding in front has the same position, and the text counts
// from 0.
func restartedPositions(t *capture.Trace, _ *order.List, pass int) (string, error) {
	at, ok, err := sides.Integers(t, pass, order.PositionIDs)
	if err != nil || !ok || len(at) < 3 {
		return "", err
	}
	start := slices.Index(at[1:], 0) + 1 // the last 0 of those in front: padding may be at 0, too
	for start > 0 && start+1 < len(at) && at[start+1] == 0 {
		start++
	}
	if start+int(at[0]) < 2 || start+1 >= len(at) || at[start+1] != 1 || at[0] != 0 && at[0] != 1 {
		return "", nil // one token at 0 twice is a position that is wrong
	}
	if ids, ok, err := sides.Integers(t, pass, order.InputIDs); err != nil || !ok || slices.ContainsFunc(ids[:min(start, len(ids))], func(id int64) bool { return id != ids[0] }) {
		return "", err
	}
	for i := range at {
		if i < start && at[i] != at[0] || i >= start && at[i] != int64(i-start) {
			return "", nil
		}
	}
	return fmt.Sprintf("%s is %d for the first %s, and then counts from 0", capture.Key(pass, order.PositionIDs, 0), at[0], amount.Of(start, "token")), nil
}

// maskedEnds finds a mask of a first pass that hides several tokens at one end of the row, of one id, from every query, their own too.
func maskedEnds(t *capture.Trace, list *order.List, pass int) (string, error) {
	ids, ok, err := sides.Integers(t, pass, order.InputIDs)
	if err != nil || !ok || pass > 0 {
		return "", err
	}
	front, back := runs(ids)
	for i := range list.Entries {
		e := &list.Entries[i]
		r, ok := t.Lookup(pass, e.Name)
		n := len(ids)
		if e.Compare != order.Pattern || !ok || measure.Elements(r.Shape) != n*n || n < 3 {
			continue
		}
		v, err := t.Value(pass, e.Name)
		if err != nil {
			return "", err
		}
		hides := measure.Masks(r.DType, t.Manifest().DType)
		first, last := hiddenEnds(n, func(q, k int) bool { return hides(v.Data[q*n+k]) })
		if first > 1 && first <= front {
			return fmt.Sprintf("%s hides the first %d tokens, all of id %d, from every query", r.Key, first, ids[0]), nil
		}
		if last > 1 && last <= back {
			return fmt.Sprintf("%s hides the last %d tokens, all of id %d, from every query", r.Key, last, ids[n-1]), nil
		}
	}
	return "", nil
}

// runs are how many ids at the front, and at the back, are one and the same; not both where all are.
func runs(ids []int64) (front, back int) {
	for front < len(ids) && ids[front] == ids[0] {
		front++
	}
	for back < len(ids)-front && ids[len(ids)-1-back] == ids[len(ids)-1] {
		back++
	}
	return front, back
}

// hiddenEnds are how many keys at either end of n no query sees.
func hiddenEnds(n int, hides func(q, k int) bool) (first, last int) {
	unseen := func(k int) bool {
		for q := range n {
			if !hides(q, k) {
				return false
			}
		}
		return true
	}
	for first < n && unseen(first) {
		first++
	}
	for last < n-first && unseen(n-1-last) {
		last++
	}
	if first == n { // everything is masked: no row of tokens
		return 0, 0
	}
	return first, last
}
