package diagnose

import (
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// rowFunctions are what may be done to each row of a tensor that nothing of the operation does.
var rowFunctions = []struct {
	kind Kind
	of   func(ed *program.Editor, x program.Var) program.Var
}{
	{"row.maximum-subtracted", func(ed *program.Editor, x program.Var) program.Var { return ed.Sub("", x, ed.RowMax(x)) }},
	{"row.mean-subtracted", func(ed *program.Editor, x program.Var) program.Var { return ed.Sub("", x, ed.Mean("", x)) }},
	{"row.over-length", func(ed *program.Editor, x program.Var) program.Var {
		return ed.Div("", x, ed.Sqrt("", ed.Sum("", ed.Mul("", x, x))))
	}},
	{"row.over-sum", func(ed *program.Editor, x program.Var) program.Var { return ed.Div("", x, ed.Sum("", x)) }},
	{"row.over-root-mean-square", func(ed *program.Editor, x program.Var) program.Var {
		return ed.Mul("", x, ed.Rsqrt("", ed.Mean("", ed.Mul("", x, x))))
	}},
}

// byRow tries functions of rows on the result, and on what the program reads.
func (s *search) byRow() error {
	t := s.first.signed(s.m)
	places := leafSteps(t, program.Input)
	if len(places) > maxPlaces {
		places = nil
	}
	for _, at := range append([]int{result}, places...) {
		what := theResult
		if at >= 0 {
			what = s.value(s.first, t.Result(at))
		}
		for _, f := range rowFunctions {
			for _, stored := range []bool{true, false} {
				if !stored && s.first.Call.DType == hooks.F32 {
					continue
				}
				m := Mistake{Kind: f.kind, Of: what}
				if err := s.try(hypothesis{
					class: program.Inserted, of: m.Key(), say: func(*Entry) Name { return m.name() },
					make: func(e *Entry) *program.Edited {
						return s.at(e, placeOf(t, at), func(ed *program.Editor, v program.Var) program.Var {
							if v.Last() < 2 {
								return ed.Fail("width")
							}
							y := f.of(ed, v)
							if stored {
								y = ed.R(y)
							}
							return y
						})
					},
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
