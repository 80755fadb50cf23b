package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// addedVectors tries vectors of the layer that the program does not read, each added to a value of as many columns, or of as many in all of
// its heads: a bias that is added behind a rotation.
func (s *search) addedVectors() error {
	t := s.first.signed(s.m)
	for _, w := range s.vectors(s.first) {
		role := Role(w.Name)
		for _, i := range t.Firsts() {
			if st := &t.Steps[i]; perHead(st.Shape, w.Shape[0]) == nil || !st.Prim.Computes() && st.Prim != program.Input {
				continue
			}
			at, what := t.Of(i), s.value(s.first, t.Result(i))
			if i == t.Source(t.Out) {
				what = theResult
			}
			m := Mistake{Kind: "vector.added", Place: role, Of: weightTerm(w.Name), By: what}
			for _, stored := range []bool{false, true} {
				if stored && s.first.Call.DType == hooks.F32 {
					continue
				}
				if err := s.try(hypothesis{
					class: program.Inserted, say: func(*Entry) Name { return m.name() },
					make: func(e *Entry) *program.Edited { return s.withVector(e, at, role, stored) },
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// withVector adds the vector of a role of the entry's layer to the value of a place, which is stored in the model's dtype first or not.
func (s *subject) withVector(e *Entry, at program.Place, role string, stored bool) *program.Edited {
	all, steps := s.vectors(e), e.signed(s.m).Copies(at)
	k := slices.IndexFunc(all, func(w order.Weight) bool { return Role(w.Name) == role })
	if k < 0 || len(steps) == 0 {
		return nil
	}
	rows, err := s.m.Weights(all[k])
	if s.failed(err) {
		return nil
	}
	ed := e.Program.Edit()
	v := ed.OtherRows(rows)
	for _, i := range steps {
		shape := perHead(e.Program.Steps[i].Shape, all[k].Shape[0])
		if shape == nil {
			return nil
		}
		x := ed.Move(i)
		if stored {
			x = ed.Rounded(x)
		}
		ed.Pass(i, ed.R(ed.Add("", x, ed.Reshape(v, shape...))))
	}
	return ended(ed)
}

// perHead is the shape in which a vector of n numbers is added to a tensor: along its last axis, or along that and the axis of heads, the
// second of four. It is nil where it has neither.
func perHead(shape []int, n int) []int {
	switch last := len(shape) - 1; {
	case last < 0:
	case shape[last] == n:
		return []int{n}
	case last == 3 && shape[1]*shape[last] == n:
		return []int{shape[1], 1, shape[last]}
	}
	return nil
}

// vectors are those of an entry's layer that its program does not read.
func (s *subject) vectors(e *Entry) []order.Weight {
	own, _ := layerOf(s.m.List.Entries[e.Node.Entry].Name)
	var all []order.Weight
	for k := range s.m.List.Entries {
		other := &s.m.List.Entries[k]
		if layer, in := layerOf(other.Name); !in || layer != own {
			continue
		}
		for _, w := range other.Weights {
			same := func(o order.Weight) bool { return o.Name == w.Name }
			if len(w.Shape) == 1 && !slices.ContainsFunc(e.Weights, same) && !slices.ContainsFunc(all, same) {
				all = append(all, w)
			}
		}
	}
	return all
}
