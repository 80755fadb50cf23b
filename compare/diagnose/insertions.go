package diagnose

import (
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// placeTerm is the term of a place of [search.places]: the value of a step, or the result.
func (s *search) placeTerm(t *program.Parts, step int) Term {
	if step < 0 {
		return theResult
	}
	return s.value(s.first, t.Result(step))
}

// insertions are a factor and a soft cap at a place.
func (s *search) insertions(t *program.Parts, step int) []family {
	what := s.placeTerm(t, step)
	named := func(kind Kind) func(e *Entry, n number) Name {
		return func(_ *Entry, n number) Name {
			return Mistake{Kind: kind, Of: what, X: some(n.value), Called: s.called(n.value, 1, "")}.name()
		}
	}
	type change = func(ed *program.Editor, v program.Var, x float64) program.Var
	of := func(starts []float64, old float64, say func(*Entry, number) Name, first change, also ...change) family {
		made := func(c change) func(e *Entry, x float64) *program.Edited {
			return func(e *Entry, x float64) *program.Edited {
				return s.at(e, placeOf(t, step), func(ed *program.Editor, v program.Var) program.Var { return c(ed, v, x) })
			}
		}
		f := family{class: program.Inserted, starts: starts, old: old, say: say, edit: made(first)}
		if s.first.Call.DType != hooks.F32 {
			for _, c := range also {
				f.also = append(f.also, made(c))
			}
		}
		return f
	}
	all := []family{
		of([]float64{1}, 1, named("factor.inserted"), func(ed *program.Editor, v program.Var, x float64) program.Var {
			return ed.R(ed.Mul("", v, ed.Scalar("", x)))
		}, func(ed *program.Editor, v program.Var, x float64) program.Var {
			return ed.Mul("", v, ed.Scalar("", x))
		}, func(ed *program.Editor, v program.Var, x float64) program.Var {
			return ed.R(ed.Div("", v, ed.Tensor("", 1/x)))
		}),
		of([]float64{1}, 0, func(_ *Entry, n number) Name {
			return Mistake{Kind: "addend.inserted", Of: what, X: some(n.value)}.name()
		}, func(ed *program.Editor, v program.Var, x float64) program.Var {
			return ed.R(ed.Add("", v, ed.Scalar("", x)))
		}, func(ed *program.Editor, v program.Var, x float64) program.Var {
			return ed.Add("", v, ed.Scalar("", x))
		}),
		of([]float64{1, 4, 16, 64}, 0, named("soft-cap.inserted"), func(ed *program.Editor, v program.Var, x float64) program.Var {
			c := ed.Scalar("", x)
			return ed.R(ed.Mul("", ed.R(ed.Tanh("", ed.R(ed.Div("", v, c)))), c))
		}, func(ed *program.Editor, v program.Var, x float64) program.Var {
			c := ed.Scalar("", x)
			return ed.Mul("", ed.Tanh("", ed.Div("", v, c)), c)
		}, func(ed *program.Editor, v program.Var, x float64) program.Var {
			return ed.R(ed.Mul("", ed.R(ed.Tanh("", ed.R(ed.Mul("", v, ed.Tensor("", 1/x))))), ed.Scalar("", x)))
		}),
	}
	if step == unrounded { // only a factor is part of the kernel that rounds
		return all[:1]
	}
	return all
}
