package capture

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Select returns the entries of a list that the scope asks for, in order. Layers limits the entries of layers and drops
// those after the layers; those before stay. The token ids are always among them.
func (s Scope) Select(l *order.List) []*order.Entry {
	var selected []*order.Entry
	inLayers := false
	for i := range l.Entries {
		e := &l.Entries[i]
		inLayers = inLayers || e.Layer >= 0
		after := inLayers && e.Layer < 0
		switch {
		case e.Name == order.InputIDs:
		case e.Level > s.Level, e.Layer >= 0 && !s.Layers.Has(e.Layer), after && len(s.Layers) > 0, !s.matches(e.Name):
			continue
		}
		selected = append(selected, e)
	}
	return selected
}

func (s Scope) matches(name string) bool {
	return len(s.Tensors) == 0 || slices.ContainsFunc(s.Tensors, func(p string) bool { return hooks.Match(p, name) })
}

// Check reports a part of the scope that can select nothing of a list: layers that the model does not have, patterns
// that no name matches. A person who typed it meant something else.
func (s Scope) Check(l *order.List) error {
	for _, r := range s.Layers {
		if l.Config == nil {
			break
		}
		if last := l.Config.NumLayers - 1; r.From > last || r.To > last && r.To != NoEnd {
			return fmt.Errorf("layers %s: the model has layers 0 to %d", Ranges{r}, last)
		}
	}
	for _, p := range s.Tensors {
		if !slices.ContainsFunc(l.Entries, func(e order.Entry) bool { return hooks.Match(p, e.Name) }) {
			return fmt.Errorf("tensors %q: no name of the order matches", p)
		}
	}
	return nil
}

// Narrow reports whether the scope leaves out a part of the way from the input to the logits. A level alone does not.
func (s Scope) Narrow() bool {
	return len(s.Layers) > 0 || len(s.Tensors) > 0 || len(s.Passes) > 0 || len(s.Positions) > 0
}

// Rows returns which of the tokens of a pass the scope keeps: indices into the pass, whose first token stands at
// position past of the sequence.
func (s Scope) Rows(past, tokens int) []int {
	var keep []int
	for t := range tokens {
		if s.Positions.Has(past + t) {
			keep = append(keep, t)
		}
	}
	return keep
}
