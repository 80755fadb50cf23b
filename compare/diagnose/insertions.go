package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// placeTerm is the term of a place of [places]: the value of a step, or the result.
func placeTerm(s *search, t *edit.StepIndex, step int) Term {
	if step < 0 {
		return theResult
	}
	return s.value(s.first, t.Result(step))
}

// insertions are a factor, an addend and a soft cap at a place. Ports round each kind in different ways, see [insertedNumber].
func insertions(s *search, t *edit.StepIndex, step int) []family {
	roundings := func(all ...Rounding) []Rounding {
		if s.first.Call.DType == hooks.F32 {
			return nil
		}
		return all
	}
	of := func(m Mistake) func(n number) Mistake {
		m.Of, m.Edit = placeTerm(s, t, step), placed(placeOf(t, step))
		return func(n number) Mistake {
			if m.X = some(n.value); m.Kind != "addend.inserted" {
				m.Called = s.numbers.called(n.value, 1, "")
			}
			return m
		}
	}
	all := []family{
		{starts: []float64{1}, old: 1, of: of(Mistake{Kind: "factor.inserted"}), roundings: roundings(Unstored, Divided)},
		{starts: []float64{1}, of: of(Mistake{Kind: "addend.inserted"}), roundings: roundings(Unstored)},
		{starts: []float64{1, 4, 16, 64}, of: of(Mistake{Kind: "soft-cap.inserted"}), roundings: roundings(Unstored, Divided)},
	}
	if step == unrounded { // only a factor is part of the kernel that rounds
		return all[:1]
	}
	return all
}

// insertedNumber inserts a factor, an addend or a soft cap at a place. Each step rounds, or no step does. With [Divided], a factor is a division by its
// reciprocal, which is a tensor, and a soft cap is a product with its reciprocal.
func insertedNumber(s *subject, e *Entry, m Mistake) *program.Edited {
	x := m.X.Value
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		c := ed.Scalar("", x)
		r := ed.R
		if m.Rounding == Unstored {
			r = func(v program.Var) program.Var { return v }
		}
		switch {
		case m.Kind == "addend.inserted":
			return r(ed.Add("", v, c))
		case m.Kind == "factor.inserted" && m.Rounding == Divided:
			return r(ed.Div("", v, ed.Tensor("", 1/x)))
		case m.Kind == "factor.inserted":
			return r(ed.Mul("", v, c))
		case m.Rounding == Divided:
			return r(ed.Mul("", r(ed.Tanh("", r(ed.Mul("", v, ed.Tensor("", 1/x))))), c))
		}
		return r(ed.Mul("", r(ed.Tanh("", r(ed.Div("", v, c)))), c))
	})
}

// addends yields captured tensors that are added to the result, or to an input of the program, and the result of the layer before. The port may not store
// a sum within the program.
func addends(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		own := s.m.List.Entries[s.first.Node.Entry].Name
		if !yield(Mistake{Kind: "result.accumulated", By: tensorTerm(own)}) {
			return
		}
		for _, other := range capturedLike(s, own) {
			for _, i := range s.places(t) {
				for _, rounding := range []Rounding{"", Unstored} {
					if rounding != "" && (i < 0 || s.first.Call.DType == hooks.F32) {
						continue
					}
					m := Mistake{Kind: "tensor.added", Place: order.NameOf(other).Role(), Of: placeTerm(s, t, i), By: tensorTerm(other), Source: other, Rounding: rounding, Edit: placed(placeOf(t, i))}
					if !yield(m) {
						return
					}
					if m.Kind = "tensor.taken-off"; !yield(m) {
						return
					}
				}
			}
		}
	}
}

// accumulated adds the port's result of the same operation in the layer before.
func accumulated(s *subject, e *Entry, _ Mistake) *program.Edited {
	v, ok := s.tensor(e, source{name: before(s.m.List.Entries[e.Node.Entry].Name)})
	if !ok {
		return nil
	}
	return s.at(e, edit.Place{Arg: result}, func(ed *edit.Editor, x program.Var) program.Var {
		if !slices.Equal(v.Shape, x.Shape) {
			return ed.Fail("shapes")
		}
		return ed.R(ed.Add("", x, ed.Other(v)))
	})
}

// addend adds a captured tensor of the entry's layer to a value, or subtracts it.
func addend(s *subject, e *Entry, m Mistake) *program.Edited {
	v, ok := s.tensor(e, source{name: s.here(m.Source, e)})
	if !ok {
		return nil
	}
	return s.at(e, s.place(m), func(ed *edit.Editor, x program.Var) program.Var {
		if !slices.Equal(v.Shape, x.Shape) {
			return ed.Fail("shapes")
		}
		y := ed.Other(v)
		if m.Kind == "tensor.taken-off" {
			y = ed.Sub("", x, y)
		} else {
			y = ed.Add("", x, y)
		}
		if m.Rounding == "" {
			y = ed.R(y)
		}
		return y
	})
}
