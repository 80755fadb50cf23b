package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// leaves looks at what the program reads: weights, and captured tensors.
func (s *search) leaves() error {
	for _, look := range []func() error{func() error { return s.from(exchanged) }, s.weights, s.packed, s.cuts, s.otherRows, s.damaged, func() error { return s.from(inputs, lastSlots) }} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// leafSteps are the first steps of weights, or of inputs.
func leafSteps(t *program.Parts, prims ...program.Prim) []int {
	var all []int
	for _, i := range t.Firsts() {
		if slices.Contains(prims, t.Steps[i].Prim) {
			all = append(all, i)
		}
	}
	return all
}

// weights tries weights that were changed, and others of their shape.
func (s *search) weights() error {
	t := s.first.signed(s.m)
	prims, changes := []program.Prim{program.Weight, program.Matrix}, s.changes()
	if s.cautious { // a vector that was not loaded: a bias of 0, a gain of 1
		prims, changes = prims[:1], []change{zeroed, unit}
	}
	steps := leafSteps(t, prims...)
	for _, c := range changes {
		for _, i := range steps {
			w := s.first.Weights[t.Steps[i].Index]
			m := c.is
			if m.Of, m.Place = weightTerm(w.Name), Role(w.Name); c.headless != "" && s.headless(w.Name) {
				m.Kind = c.headless
			}
			h := hypothesis{
				class: program.Leaf,
				make: func(e *Entry) *program.Edited {
					return s.reweighted(e, t.Of(i), func(k int) program.Rows { return c.make(e.Call.W[k], e.Call.DType) })
				},
				say: func(*Entry) Name { return m.name() },
			}
			if err := s.try(h); err != nil {
				return err
			}
		}
	}
	if s.cautious {
		return nil
	}
	for _, i := range steps {
		if err := s.otherWeights(t.Of(i), s.first.Weights[t.Steps[i].Index]); err != nil {
			return err
		}
	}
	return nil
}

// headless reports whether the rows of a weight are of no heads: what reads the result of its operation has none.
func (s *subject) headless(weight string) bool {
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

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// reweighted has another weight at a place: of gives it, by its number in the program.
func (s *subject) reweighted(e *Entry, at program.Place, of func(k int) program.Rows) *program.Edited {
	t := e.signed(s.m)
	ed := e.Program.Edit()
	all := t.Copies(at)
	for _, i := range all {
		w := of(e.Program.Steps[i].Index)
		if w == nil {
			return nil
		}
		ed.OtherWeight(i, w)
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}

// otherWeights tries other weights of the shape: of the same layer, of none, and for each entry by itself those of the same role in
// other layers. Those that have the shape when they are transposed are tried so.
func (s *search) otherWeights(at program.Place, w order.Weight) error {
	named := func(name func(own string) string, turn bool) func(e *Entry) *program.Edited {
		return func(e *Entry) *program.Edited {
			return s.reweighted(e, at, func(k int) program.Rows {
				own := s.listed(e.Weights[k])
				other, ok := s.weightOf(name(own.Name))
				shape := own.Shape
				if turn {
					shape = reversed(shape)
				}
				if !ok || other.Name == own.Name || !slices.Equal(other.Shape, shape) {
					return nil
				}
				rows, err := s.m.Weights(other)
				if s.failed(err) {
					return nil
				}
				if turn {
					if rows = turned(rows); rows == nil {
						return nil
					}
				}
				return sameRows(e.Call.W[k], rows)
			})
		}
	}
	w = s.listed(w)
	for _, turn := range []bool{false, true} {
		shape := w.Shape
		if turn {
			shape = reversed(shape)
		}
		for _, other := range s.shaped(w, shape) {
			m := Mistake{Kind: "weight.other", Place: Role(w.Name), By: weightTerm(other), For: weightTerm(w.Name)}
			if _, ok := layerOf(w.Name); !ok { // which layer it is of
				m.By.Name, m.For.Name = other, w.Name
			}
			if turn {
				m.Kind = "weight.other-transposed"
			}
			h := hypothesis{
				class: program.Leaf, make: named(func(own string) string { return beside(other, own) }, turn),
				say: func(*Entry) Name { return m.name() },
			}
			if err := s.try(h); err != nil {
				return err
			}
		}
	}
	return s.instances(weightTerm(w.Name), s.sameRole(w.Name), program.Leaf, func(other string) func(e *Entry) *program.Edited {
		return named(func(string) string { return other }, false)
	})
}

// reversed is the shape of a matrix that is transposed; nil for what is none.
func reversed(shape []int) []int {
	if len(shape) != 2 {
		return nil
	}
	return []int{shape[1], shape[0]}
}

// weightOf is a weight of the order by its name.
func (s *subject) weightOf(name string) (order.Weight, bool) {
	for i := range s.m.List.Entries {
		for _, w := range s.m.List.Entries[i].Weights {
			if w.Name == name {
				return w, true
			}
		}
	}
	return order.Weight{}, false
}

// listed is a weight with its shape in the order, which is larger where a search looks at some rows of it.
func (s *subject) listed(w order.Weight) order.Weight {
	if all, ok := s.weightOf(w.Name); ok {
		return all
	}
	return w
}

// sameRows returns the rows of another matrix with the numbers of the kept rows of the entry's matrix. It is nil if the two matrices have different sizes.
func sameRows(own, other program.Rows) program.Rows {
	if some, ok := own.(interface {
		Of(all program.Rows) program.Rows
	}); ok {
		other = some.Of(other)
	}
	a, b := other.Size()
	if x, y := own.Size(); a != x || b != y {
		return nil
	}
	return other
}

// shaped lists a weight of each other role than that of one, of a shape: of the layer where it has a layer, and of each layer where it has none.
func (s *search) shaped(w order.Weight, shape []int) []string {
	var all []string
	if shape == nil {
		return nil
	}
	key := Role
	if _, ok := layerOf(w.Name); !ok {
		key = func(name string) string { return name }
	}
	seen := map[string]bool{key(w.Name): true}
	for i := range s.m.List.Entries {
		for _, o := range s.m.List.Entries[i].Weights {
			if slices.Equal(o.Shape, shape) && !seen[key(o.Name)] {
				seen[key(o.Name)] = true
				all = append(all, o.Name)
			}
		}
	}
	return all
}

// sameRole lists the weights of the role of one, itself too.
func (s *subject) sameRole(name string) []string {
	var all []string
	for i := range s.m.List.Entries {
		for _, o := range s.m.List.Entries[i].Weights {
			if Role(o.Name) == Role(name) && !slices.Contains(all, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	return all
}

// beside is a name in the layer of another.
func beside(name, own string) string {
	layer, ok := layerOf(own)
	if _, has := layerOf(name); !ok || !has {
		return name
	}
	return layer + Module(name)
}

// here is a name in the layer of an entry.
func (s *subject) here(name string, e *Entry) string {
	return beside(name, s.m.List.Entries[e.Node.Entry].Name)
}

// layerOf is the beginning of a name in a layer: "layers.3.".
func layerOf(name string) (string, bool) {
	m := Module(name)
	return strings.TrimSuffix(name, m), m != name
}
