package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// leafSteps are the first copies of the steps that read weights, or inputs.
func leafSteps(t *edit.StepIndex, prims ...program.Prim) []int {
	var all []int
	for _, i := range t.Firsts() {
		if slices.Contains(prims, t.Steps[i].Prim) {
			all = append(all, i)
		}
	}
	return all
}

// headless reports whether the rows of a weight belong to no heads: no reader of the operation's result has an axis of heads.
func headless(s *subject, weight string) bool {
	var of string
	for i := range s.m.List.Entries {
		e := &s.m.List.Entries[i]
		if len(e.Weights) > 0 && e.Weights[0].Name == weight {
			of = e.Name
		}
	}
	readers := 0
	for i := range s.m.List.Entries {
		e := &s.m.List.Entries[i]
		if slices.ContainsFunc(e.Inputs, func(r order.Ref) bool { return r.Name == of }) {
			if readers++; e.Axes == "" || strings.Contains(e.Axes, "h") {
				return false
			}
		}
	}
	return readers > 0
}

// reversed is the shape of a matrix after a transpose; nil for a shape that is no matrix.
func reversed(shape []int) []int {
	if len(shape) != 2 {
		return nil
	}
	return []int{shape[1], shape[0]}
}

// weightOf finds a weight of the order, or a vector that no entry reads, by its name.
func (s *subject) weightOf(name string) (order.Weight, bool) {
	for i := range s.m.List.Entries {
		for _, w := range s.m.List.Entries[i].Weights {
			if w.Name == name {
				return w, true
			}
		}
	}
	k := slices.IndexFunc(s.m.Spare, func(w order.Weight) bool { return w.Name == name })
	if k < 0 {
		return order.Weight{}, false
	}
	return s.m.Spare[k], true
}

// listedWeight is a weight with its shape in the order. A search may look at only some rows, and then has a smaller shape.
func listedWeight(s *subject, w order.Weight) order.Weight {
	if all, ok := s.weightOf(w.Name); ok {
		return all
	}
	return w
}

// shaped lists weights of a shape, without w: one weight for each other role if w lies within a layer, and every weight if w lies outside of layers.
func shaped(s *subject, w order.Weight, shape []int) []string {
	var all []string
	if shape == nil {
		return nil
	}
	key := func(name string) string {
		if !order.NameOf(w.Name).Within() {
			return name
		}
		return order.NameOf(name).Role()
	}
	seen := map[string]bool{key(w.Name): true}
	for _, o := range s.m.List.Weights() {
		if slices.Equal(o.Shape, shape) && !seen[key(o.Name)] {
			seen[key(o.Name)] = true
			all = append(all, o.Name)
		}
	}
	return all
}

// sameRole lists the weights with the role of a weight, with the weight itself.
func sameRole(s *subject, name string) []string {
	var all []string
	for _, o := range s.m.List.Weights() {
		if order.NameOf(o.Name).Role() == order.NameOf(name).Role() {
			all = append(all, o.Name)
		}
	}
	return all
}

// here is the same name in the layer of an entry.
func (s *subject) here(name string, e *Entry) string {
	return order.NameOf(name).Beside(order.NameOf(s.m.List.Entries[e.Node.Entry].Name)).String()
}
