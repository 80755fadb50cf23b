package suitable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// contradictions returns an [*sides.UnsuitableError] for a trace with tensors in contradiction to its manifest or
// to the order. In an A/B comparison of different configurations the order describes only one side, so nothing is
// checked.
func contradictions(traces [2]*capture.Trace, o Options, differ bool) error {
	list := o.Order
	if list == nil || list.Config == nil || list.IsRecorded() || o.Mode == sides.AB && differ {
		return nil
	}
	whole, err := order.New(list.Config) // list may be some of its names
	if err != nil {
		return err
	}
	names := sides.NamesOf(o.Mode)
	for i, t := range traces {
		if i > 0 && t == traces[0] {
			break
		}
		if err := cmp.Or(rewritten(names[i].Trace, t, whole), contradiction(names[i].Trace, t, whole)); err != nil {
			return err
		}
	}
	return nil
}

// contradiction is that of one trace, by the whole order of its model.
func contradiction(name string, t *capture.Trace, whole *order.List) error {
	for _, find := range []func(*capture.Trace, *order.List) (string, error){layerTooMany, outsideItself, outOfOrder, tokenTooLarge, otherDType} {
		what, err := find(t, whole)
		if err != nil {
			return err
		}
		if what != "" {
			return &sides.UnsuitableError{
				What: "manifest", Reason: name + " contradicts itself: " + what,
				Hint: "is the file what the run wrote, and of this model? capture it again; tracediff inspect FILE shows what it has",
			}
		}
	}
	return nil
}

// layerTooMany finds a tensor of a layer that the configuration does not have.
func layerTooMany(t *capture.Trace, list *order.List) (string, error) {
	for _, r := range t.Records() {
		if order.NameOf(r.Name).Layer() >= list.Config.NumLayers {
			return fmt.Sprintf("the configuration has %s, 0 to %d, but there is a tensor %q", amount.Of(list.Config.NumLayers, "layer"), list.Config.NumLayers-1, r.Key), nil
		}
	}
	return "", nil
}

// outsideItself finds a tensor that a trace's own scope leaves out: it would not be compared. What the order does not know is no
// matter of the scope.
func outsideItself(t *capture.Trace, list *order.List) (string, error) {
	m := t.Manifest()
	chosen := sides.Selected(m.Scope, list)
	for _, r := range t.Records() {
		e, known := list.Lookup(r.Name)
		if !known {
			continue
		}
		if _, given := e.Op.(op.Given); given {
			continue
		}
		if !chosen[r.Name] || !m.Scope.Passes.Has(r.Pass) {
			return fmt.Sprintf("its scope (%s) leaves out the tensor %q, which it has", sides.Choice(m.Scope), r.Key), nil
		}
	}
	return "", nil
}

// outOfOrder finds a tensor recorded before one of its own inputs, in a trace declared to be in execution order.
// Independent entries may come in either order, and model inputs may be recorded at any time.
func outOfOrder(t *capture.Trace, list *order.List) (string, error) {
	if !t.Sequence() || t.Manifest().Program != "" { // a run that records writes a tensor when it knows its name, which may be later
		return "", nil
	}
	recomputed := sides.Set(t.Manifest().Derived) // at any time
	at := map[order.Node]int{}
	for i, r := range t.Records() {
		if n := list.Index(r.Name); n >= 0 && r.Firing == 0 && !recomputed[r.Name] {
			at[order.Node{Entry: n, Pass: r.Pass}] = i
		}
	}
	for _, r := range t.Records() {
		n := order.Node{Entry: list.Index(r.Name), Pass: r.Pass}
		own, ok := at[n]
		if !ok {
			continue
		}
		for _, in := range nearest(list, n.Entry, func(entry int) bool {
			_, has := at[order.Node{Entry: entry, Pass: r.Pass}]
			return has && !isInput(list.Entries[entry].Name)
		}) {
			if before := at[order.Node{Entry: in, Pass: r.Pass}]; before > own {
				return fmt.Sprintf("it says that its tensors are in the order of execution, but %q stands before %q, from which it is computed", r.Key, t.Records()[before].Key), nil
			}
		}
	}
	return "", nil
}

// isInput reports whether a tensor is an input of the model: token ids, positions, or a mask (an argument of
// transformers' layers). A port has its inputs before the first operation, whenever it records them.
func isInput(name string) bool {
	return name == order.InputIDs || name == order.PositionIDs || strings.HasPrefix(name, "mask.")
}

// nearest are the closest ancestors of an entry in its pass for which has is true.
func nearest(list *order.List, entry int, has func(entry int) bool) []int {
	var found []int
	seen := map[int]bool{}
	open := []int{entry}
	for len(open) > 0 {
		e := &list.Entries[open[len(open)-1]]
		open = open[:len(open)-1]
		for _, in := range e.Inputs {
			at := list.Index(in.Name)
			switch {
			case in.Prev || at < 0 || seen[at]:
				continue
			case has(at):
				found = append(found, at)
			default:
				open = append(open, at)
			}
			seen[at] = true
		}
	}
	slices.Sort(found)
	return found
}

// tokenTooLarge finds a token id that the vocabulary does not have.
func tokenTooLarge(t *capture.Trace, list *order.List) (string, error) {
	for pass := range sides.Passes(t) {
		ids, ok, err := sides.Integers(t, pass, order.InputIDs)
		if err != nil {
			return "", err
		}
		if !ok {
			continue
		}
		if len(ids) == 0 {
			return capture.Key(pass, order.InputIDs, 0) + " has no tokens", nil
		}
		for _, id := range ids {
			if id < 0 || id >= int64(list.Config.VocabSize) {
				return fmt.Sprintf("the vocabulary has %d tokens, and %s has the id %d", list.Config.VocabSize, capture.Key(pass, order.InputIDs, 0), id), nil
			}
		}
	}
	return "", nil
}

// otherDType finds a trace without a single layer output in its declared dtype: a float32 trace declared as
// bfloat16 would be held to the limits of bfloat16. Tensors kept in float32 by engines (scores, logits) and copies
// do not count.
func otherDType(t *capture.Trace, list *order.List) (string, error) {
	d := t.Manifest().DType
	if d != hooks.BF16 && d != hooks.F16 {
		return "", nil
	}
	example := ""
	for _, r := range t.Records() {
		e, ok := list.Lookup(r.Name)
		if !ok || e.Layer < 0 || e.Level > 2 || e.DType != "" || e.Compare != order.All || r.Firing > 0 || r.Size == 0 {
			continue
		}
		if _, exact := e.Op.(op.Exact); exact {
			continue
		}
		if !r.DType.Float() {
			return "", nil
		}
		holds, err := measure.Holds(t, r, d)
		if err != nil || holds {
			return "", err
		}
		if example == "" {
			example = r.Key
		}
	}
	if example == "" {
		return "", nil
	}
	return fmt.Sprintf("it says that it was computed in %s, but no module output of its layers has that precision, the first is %q", d, example), nil
}
