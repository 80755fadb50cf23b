package capture

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Select returns the entries of a list that the scope asks for, in order. Layers selects among the entries of layers
// and drops the entries after the layers; entries before the layers stay. The token ids are always selected.
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

// Check reports a part of the scope that selects nothing of a list, which is a typing error: layers that the model
// does not have, and patterns that match no name.
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
	if s.Level == 0 {
		s.Level = 3
	}
	chosen := s.Select(l)
	for _, p := range s.Tensors {
		if !slices.ContainsFunc(chosen, func(e *order.Entry) bool { return hooks.Match(p, e.Name) }) {
			return fmt.Errorf("tensors %q: no tensor in %s matches", p, s.limits())
		}
	}
	return nil
}

// limits are the level and the layers of a scope, in words.
func (s Scope) limits() string {
	text := fmt.Sprintf("level %d", s.Level)
	if len(s.Layers) > 0 {
		text += " of layers " + s.Layers.String()
	}
	return text
}

// CheckRun reports a part of the scope that selects nothing of a run with these numbers of tokens, pass by pass: passes that
// the run does not have, and positions that no selected pass has.
func (s Scope) CheckRun(tokens []int) error {
	for _, r := range s.Passes {
		if last := len(tokens) - 1; r.From > last || r.To > last && r.To != NoEnd {
			return fmt.Errorf("passes %s: the run has passes 0 to %d", Ranges{r}, last)
		}
	}
	for _, r := range s.Positions {
		past, selected := 0, false
		for pass, n := range tokens {
			selected = selected || s.Passes.Has(pass) && r.From < past+n && r.To >= past
			past += n
		}
		if !selected {
			return fmt.Errorf("positions %s: the selected passes do not have them; the run has positions 0 to %d", Ranges{r}, past-1)
		}
	}
	return nil
}

// Narrow reports whether the scope leaves out a part of the way from the input to the logits. A level does not.
func (s Scope) Narrow() bool {
	return len(s.Layers) > 0 || len(s.Tensors) > 0 || len(s.Passes) > 0 || len(s.Positions) > 0
}

// Rows returns the tokens of a pass that the scope keeps, as indices into the pass. The first token of the pass is
// at position past of the sequence.
func (s Scope) Rows(past, tokens int) []int {
	var keep []int
	for t := range tokens {
		if s.Positions.Has(past + t) {
			keep = append(keep, t)
		}
	}
	return keep
}
