package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// contradictions returns an [*UnsuitableError] for a trace whose tensors contradict what it says of itself, or the order. In an A/B
// comparison of different configurations the order is that of one side alone, and neither is held to it.
func contradictions(traces [2]*capture.Trace, o Options, differ bool) error {
	list := o.Order
	if list == nil || list.Config == nil || list.IsRecorded() || o.AB && differ {
		return nil
	}
	whole, err := order.New(list.Config) // list may be some of its names
	if err != nil {
		return err
	}
	names := o.names()
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
			return &UnsuitableError{
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
		rest, in := strings.CutPrefix(r.Name, "layers.")
		number, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); in && err == nil && n >= list.Config.NumLayers {
			return fmt.Sprintf("the configuration has %s, 0 to %d, but there is a tensor %q", count(list.Config.NumLayers, "layer"), list.Config.NumLayers-1, r.Key), nil
		}
	}
	return "", nil
}

// outsideItself finds a tensor that a trace's own scope leaves out: it would not be compared. What the order does not know is no
// matter of the scope.
func outsideItself(t *capture.Trace, list *order.List) (string, error) {
	m := t.Manifest()
	chosen := selected(m.Scope, list)
	for _, r := range t.Records() {
		e, known := list.Lookup(r.Name)
		if !known {
			continue
		}
		if _, given := e.Op.(op.Given); given {
			continue
		}
		if !chosen[r.Name] || !m.Scope.Passes.Has(r.Pass) {
			return fmt.Sprintf("its scope (%s) leaves out the tensor %q, which it has", choice(m.Scope), r.Key), nil
		}
	}
	return "", nil
}

// outOfOrder finds a tensor that a trace, which is to be in the order of execution, has before one that it is computed from.
// Which of two entries comes first that do not depend on each other is for the engine to choose, and so is when an input is written.
func outOfOrder(t *capture.Trace, list *order.List) (string, error) {
	if !t.Sequence() || t.Manifest().Program != "" { // a run that records writes a tensor when it knows its name, which may be later
		return "", nil
	}
	recomputed := set(t.Manifest().Derived) // at any time
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

// isInput reports whether a tensor is an input of the model: token ids, positions, or a mask, which transformers gives to its layers. A port has it
// before the first operation, whenever it writes it.
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
	for pass := range Passes(t) {
		ids, ok, err := integers(t, pass, order.InputIDs)
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

// otherDType finds that no output of a module of the layers is of the dtype that the model is said to compute in: a trace of
// float32 that says it is of bfloat16 would be held to the limits of bfloat16. What engines keep in float32 beside that, scores or
// logits, says nothing, nor do copies.
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
