package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// multipliedVectors yields products with a vector of the layer, such as the weight of a norm. The vector multiplies the columns of a matrix, into
// which converters fold it, a tensor that the program reads, or the result.
func multipliedVectors(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, w := range vectorsOf(s) {
			for _, kind := range []TermKind{Weight, OnePlus} {
				by := Term{Kind: kind, Name: order.NameOf(w.Name).Role()}
				for _, of := range weightsRead(s, program.Matrix) {
					if len(of.Shape) != 2 || of.Shape[1] != w.Shape[0] || isSpare(s.subject, w) {
						continue
					}
					if !yield(Mistake{Kind: "weight.folded", Place: order.NameOf(of.Name).Role(), Of: weightTerm(of.Name), By: by, Source: w.Name}) {
						return
					}
				}
				for _, at := range append([]int{result, unrounded}, leafSteps(t, program.Input)...) {
					shape := s.first.Program.Out.Shape
					if at >= 0 {
						shape = t.Steps[at].Shape
					}
					if shape[len(shape)-1] != w.Shape[0] {
						continue
					}
					if !yield(Mistake{Kind: "vector.inserted", Place: order.NameOf(w.Name).Role(), Of: placeTerm(s, t, at), By: by, Source: w.Name, Edit: placed(placeOf(t, at))}) {
						return
					}
				}
			}
		}
	}
}

// vectorsOf lists the vectors of the first entry's layer and the vectors of no layer, one of each role. Vectors that no entry reads are last.
func vectorsOf(s *search) (all []order.Weight) {
	own := order.NameOf(s.m.List.Entries[s.first.Node.Entry].Name)
	seen := map[string]bool{}
	for _, w := range append(s.m.List.Weights(), s.m.Spare...) {
		name := order.NameOf(w.Name)
		if role := name.Role(); !seen[role] && len(w.Shape) == 1 && (!name.Within() || name.SameLayer(own)) {
			seen[role] = true
			all = append(all, w)
		}
	}
	return all
}

// isSpare reports whether no entry reads a vector. A converter folds only vectors that the model has.
func isSpare(s *subject, w order.Weight) bool {
	return slices.ContainsFunc(s.m.Spare, func(o order.Weight) bool { return o.Name == w.Name })
}

// vectorOf reads a weight of one row, in the layer of an entry. ok is false if the weight cannot be read.
func vectorOf(s *subject, e *Entry, name string) (x []float64, ok bool) {
	w, ok := s.weightOf(s.here(name, e))
	if !ok || len(w.Shape) != 1 {
		return nil, false
	}
	rows, err := s.m.Weights(w)
	if s.failed(err) {
		return nil, false
	}
	x = make([]float64, w.Shape[0])
	return x, !s.failed(rows.Row(x, 0))
}

// factorOf is the vector by which a mistake multiplies, or 1 plus the vector.
func factorOf(s *subject, e *Entry, m Mistake) (x []float64, ok bool) {
	x, ok = vectorOf(s, e, m.Source)
	plus := 0.0
	if m.By.Kind == OnePlus {
		plus = 1
	}
	for i := range x {
		x[i] = floats.Round(hooks.F32, x[i]+plus)
	}
	return x, ok
}

// folded multiplies the columns of a matrix by a vector.
func folded(s *subject, e *Entry, m Mistake) *program.Edited {
	x, ok := factorOf(s, e, m)
	if !ok {
		return nil
	}
	return reweighted(e, func(_ int, w program.Rows) program.Rows {
		if _, cols := w.Size(); cols != len(x) {
			return nil
		}
		return changed(w, func(row []float64) {
			for i := range row {
				row[i] = floats.Round(e.Call.DType, float64(float32(row[i]*x[i])))
			}
		})
	}, m.Place)
}

// timesVector multiplies a value by a vector along the last axis.
func timesVector(s *subject, e *Entry, m Mistake) *program.Edited {
	x, ok := factorOf(s, e, m)
	if !ok {
		return nil
	}
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		if v.Last() != len(x) {
			return ed.Fail("shapes")
		}
		return ed.R(ed.Mul("", v, ed.Other(program.Value{Shape: []int{len(x)}, Data: x})))
	})
}

// addedVectors yields sums with a vector of the layer that the program does not read, such as a bias after a rotation. The vector has a number for
// each channel of the value to which it is added, or for each channel of all heads.
func addedVectors(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, w := range vectorsUnread(s.subject, s.first) {
			for _, i := range t.Firsts() {
				if st := &t.Steps[i]; perHead(st.Shape, w.Shape[0]) == nil || !st.Prim.Computes() && st.Prim != program.Input {
					continue
				}
				m := Mistake{Kind: "vector.added", Place: order.NameOf(w.Name).Role(), Of: weightTerm(w.Name), By: s.value(s.first, t.Result(i)), Source: w.Name, Edit: placed(t.PlaceOf(i)), Rounding: Unstored}
				if i == t.Out.Step {
					m.By = theResult
				}
				stored := m
				stored.Rounding = ""
				if !yield(m) || s.first.Call.DType != hooks.F32 && !yield(stored) {
					return
				}
			}
		}
	}
}

// withVector adds a vector of the entry's layer to the value of a place. The value is rounded to the model's dtype first, unless the mistake is
// unstored.
func withVector(s *subject, e *Entry, m Mistake) *program.Edited {
	all, steps := vectorsUnread(s, e), e.signed(s.m).Copies(s.place(m))
	k := slices.IndexFunc(all, func(w order.Weight) bool { return order.NameOf(w.Name).Role() == order.NameOf(m.Source).Role() })
	if k < 0 || len(steps) == 0 {
		return nil
	}
	rows, err := s.m.Weights(all[k])
	if s.failed(err) {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	v := ed.OtherRows(rows)
	for _, i := range steps {
		shape := perHead(e.Program.Steps[i].Shape, all[k].Shape[0])
		if shape == nil {
			return nil
		}
		x := ed.Move(i)
		if m.Rounding != Unstored {
			x = ed.Rounded(x)
		}
		ed.Pass(i, ed.R(ed.Add("", x, ed.Reshape(v, shape...))))
	}
	return ended(ed)
}

// perHead is the shape in which a vector of n numbers is added to a tensor: along the last axis, or along the last axis and the axis of heads, the
// second of four. perHead is nil if the tensor has neither.
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

// vectorsUnread lists the vectors that operations in an entry's layer read, and that the entry's program does not read. The vectors of
// the layer that no entry reads are last. In a recorded model a weight
// may have a longer path than an entry of its layer, so the operations tell which weights belong to the layer.
func vectorsUnread(s *subject, e *Entry) (all []order.Weight) {
	own := order.NameOf(s.m.List.At(e.Node).Name)
	for k := range s.m.List.Entries {
		other := &s.m.List.Entries[k]
		if !own.SameLayer(order.NameOf(other.Name)) {
			continue
		}
		for _, w := range other.Weights {
			same := func(o order.Weight) bool { return o.Name == w.Name }
			if len(w.Shape) == 1 && !slices.ContainsFunc(e.Weights, same) && !slices.ContainsFunc(all, same) {
				all = append(all, w)
			}
		}
	}
	for _, w := range s.m.Spare {
		if order.NameOf(w.Name).SameLayer(own) {
			all = append(all, w)
		}
	}
	return all
}
