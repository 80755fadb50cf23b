package diagnose

import (
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// scaled looks for a vector of the layer, such as the weight of a norm, that is multiplied where it should not be: into the columns of a
// matrix, as converters fold it, and into what the program reads or its result.
func (s *search) scaled() error {
	t := s.first.signed(s.m)
	own := s.m.List.Entries[s.first.Node.Entry].Name
	seen := map[string]bool{}
	for k := range s.m.List.Entries {
		for _, w := range s.m.List.Entries[k].Weights {
			a, in := layerOf(w.Name)
			if b, _ := layerOf(own); seen[Role(w.Name)] || len(w.Shape) != 1 || in && a != b {
				continue
			}
			seen[Role(w.Name)] = true
			for _, plus := range []float64{0, 1} {
				vector := weightTerm(w.Name)
				if plus == 1 {
					vector.Kind = OnePlus
				}
				for _, i := range leafSteps(t, program.Matrix) {
					at := t.Of(i)
					of := s.first.Weights[t.Steps[i].Index]
					if len(of.Shape) != 2 || of.Shape[1] != w.Shape[0] {
						continue
					}
					m := Mistake{Kind: "weight.folded", Place: Role(of.Name), Of: weightTerm(of.Name), By: vector}
					if err := s.try(hypothesis{
						class: program.Leaf, say: func(*Entry) Name { return m.name() },
						make: func(e *Entry) *program.Edited { return s.folded(e, at, w.Name, plus) },
					}); err != nil {
						return err
					}
				}
				for _, at := range append([]int{result, unrounded}, leafSteps(t, program.Input)...) {
					shape := s.first.Program.Out.Shape()
					if at >= 0 {
						shape = t.Steps[at].Shape
					}
					if shape[len(shape)-1] != w.Shape[0] {
						continue
					}
					m := Mistake{Kind: "vector.inserted", Place: Role(w.Name), Of: s.placeTerm(t, at), By: vector}
					if err := s.try(hypothesis{
						class: program.Inserted, say: func(*Entry) Name { return m.name() },
						make: func(e *Entry) *program.Edited { return s.times(e, placeOf(t, at), w.Name, plus) },
					}); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// vector is a weight of one row, of the layer of an entry; ok is false where it cannot be had.
func (s *subject) vector(e *Entry, name string, plus float64) ([]float64, bool) {
	w, ok := s.weightOf(beside(name, s.m.List.Entries[e.Node.Entry].Name))
	if !ok || len(w.Shape) != 1 {
		return nil, false
	}
	rows, err := s.m.Weights(w)
	if s.failed(err) {
		return nil, false
	}
	x := make([]float64, w.Shape[0])
	if s.failed(rows.Row(x, 0)) {
		return nil, false
	}
	for i := range x {
		x[i] = floats.Round(hooks.F32, x[i]+plus)
	}
	return x, true
}

// folded has a matrix whose columns are multiplied by a vector.
func (s *subject) folded(e *Entry, at program.Place, name string, plus float64) *program.Edited {
	x, ok := s.vector(e, name, plus)
	if !ok {
		return nil
	}
	return s.reweighted(e, at, func(k int) program.Rows {
		if _, cols := e.Call.W[k].Size(); cols != len(x) {
			return nil
		}
		return changed{e.Call.W[k], func(row []float64) {
			for i := range row {
				row[i] = floats.Round(e.Call.DType, float64(float32(row[i]*x[i])))
			}
		}}
	})
}

// times has a value multiplied by a vector along its last axis.
func (s *subject) times(e *Entry, at program.Place, name string, plus float64) *program.Edited {
	x, ok := s.vector(e, name, plus)
	if !ok {
		return nil
	}
	return s.at(e, at, func(ed *program.Editor, v program.Var) program.Var {
		if v.Last() != len(x) {
			return ed.Fail("shapes")
		}
		return ed.R(ed.Mul("", v, ed.Other(program.Value{Shape: []int{len(x)}, Data: x})))
	})
}
