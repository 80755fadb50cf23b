package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// rowFunctions are functions that a port may apply to each row of a tensor, and that the operation does not apply.
var rowFunctions = map[Kind]func(ed *edit.Editor, x program.Var) program.Var{
	"row.maximum-subtracted": func(ed *edit.Editor, x program.Var) program.Var { return ed.Sub("", x, ed.RowMax(x)) },
	"row.mean-subtracted":    func(ed *edit.Editor, x program.Var) program.Var { return ed.Sub("", x, ed.Mean("", x)) },
	"row.over-length": func(ed *edit.Editor, x program.Var) program.Var {
		return ed.Div("", x, ed.Sqrt("", ed.Sum("", ed.Mul("", x, x))))
	},
	"row.over-sum": func(ed *edit.Editor, x program.Var) program.Var { return ed.Div("", x, ed.Sum("", x)) },
	"row.over-root-mean-square": func(ed *edit.Editor, x program.Var) program.Var {
		return ed.Mul("", x, ed.Rsqrt("", ed.Mean("", ed.Mul("", x, x))))
	},
}

// byRow yields functions of the rows of the result, and of the rows of the inputs.
func byRow(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		places := leafSteps(t, program.Input)
		if len(places) > maxPlaces {
			places = nil
		}
		ways := []Rounding{"", Unstored}
		if s.first.Call.DType == hooks.F32 {
			ways = ways[:1]
		}
		for _, at := range append([]int{result}, places...) {
			for _, kind := range []Kind{"row.maximum-subtracted", "row.mean-subtracted", "row.over-length", "row.over-sum", "row.over-root-mean-square"} {
				for _, way := range ways {
					if !yield(Mistake{Kind: kind, Of: placeTerm(s, t, at), Edit: placed(placeOf(t, at)), Rounding: way}) {
						return
					}
				}
			}
		}
	}
}

// ofRows applies a function to the rows of a value.
func ofRows(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		if v.Last() < 2 {
			return ed.Fail("width")
		}
		y := rowFunctions[m.Kind](ed, v)
		if m.Rounding != Unstored {
			y = ed.R(y)
		}
		return y
	})
}

// logarithms yields log softmax: each row of the result less the logarithm of the sum of its exponentials.
func logarithms(*search) iter.Seq[Mistake] {
	return slices.Values([]Mistake{{Kind: "result.log-softmax", Rounding: Unstored}, {Kind: "result.log-softmax"}})
}

// logSoftmax makes the logarithm of the softmax of the result. The result is rounded to the model's dtype first, unless the mistake is unstored.
func logSoftmax(s *subject, e *Entry, m Mistake) *program.Edited {
	own := s.asStored
	if m.Rounding == Unstored {
		own = func(e *Entry) (program.Value, bool) { return s.valueOf(e, nil) }
	}
	v, ok := own(e)
	if !ok {
		return nil
	}
	width := e.Program.Out.Last()
	for at := 0; at < len(v.Data); at += width {
		x, b := v.Data[at:][:width], v.Bound[at:][:width]
		top, sum, off := slices.Max(x), 0.0, 0.0
		for i := range x {
			y := floats.Exp(x[i] - top)
			sum, off = sum+y, off+y*b[i]
		}
		by := top + math.Log(sum)
		// The error of the logarithm is the sum of the weighted mean of the elements' errors, the error of the sum, and two roundings.
		off = off/sum + 0x1p-24*(math.Sqrt(float64(width))+4)*(1+math.Abs(by))
		for i := range x {
			x[i] -= by
			b[i] += off
		}
	}
	return given(e, v)
}
