package diagnose

import (
	"github.com/tracediff/tracediff/hooks"
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

// insertions are a factor, a term and a soft cap at a place. Engines round them in the ways of their kinds, see inserted numbers below.
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

// insertedNumber has a factor, a term or a soft cap at a place. Each step rounds, or none does; divided, a factor is the quotient by its reciprocal, which is a tensor, and a soft
// cap is multiplied by its reciprocal.
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
