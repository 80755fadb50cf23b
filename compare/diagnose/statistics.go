package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// statistic is a number that is computed from the elements of a row. The name is a key of statisticWords.
type statistic struct {
	name string
	of   func(ed *edit.Editor, x program.Var) program.Var
}

// statistics are the numbers that a port may compute from each row. A multiple of a statistic comes after the statistic: a sum after a mean.
var statistics = []statistic{
	{"largest-magnitude", func(ed *edit.Editor, x program.Var) program.Var { return ed.RowMax(magnitudes(ed, x)) }},
	{"largest-square", func(ed *edit.Editor, x program.Var) program.Var { return ed.RowMax(eachSquared(ed, x)) }},
	{"mean-magnitude", func(ed *edit.Editor, x program.Var) program.Var { return ed.Mean("", magnitudes(ed, x)) }},
	{"mean-square", func(ed *edit.Editor, x program.Var) program.Var { return ed.Mean("", eachSquared(ed, x)) }},
	{"root-mean-square", func(ed *edit.Editor, x program.Var) program.Var { return ed.Sqrt("", ed.Mean("", eachSquared(ed, x))) }},
	{"variance", func(ed *edit.Editor, x program.Var) program.Var { return ed.Mean("", eachSquared(ed, centred(ed, x))) }},
	{"deviation", func(ed *edit.Editor, x program.Var) program.Var {
		return ed.Sqrt("", ed.Mean("", eachSquared(ed, centred(ed, x))))
	}},
	{"average", func(ed *edit.Editor, x program.Var) program.Var { return ed.Mean("", x) }},
	{"maximum", func(ed *edit.Editor, x program.Var) program.Var { return ed.RowMax(x) }},
	{"sum-of-magnitudes", func(ed *edit.Editor, x program.Var) program.Var { return ed.Sum("", magnitudes(ed, x)) }},
	{"sum-of-squares", func(ed *edit.Editor, x program.Var) program.Var { return ed.Sum("", eachSquared(ed, x)) }},
	{"length", func(ed *edit.Editor, x program.Var) program.Var { return ed.Sqrt("", ed.Sum("", eachSquared(ed, x))) }},
	{"sum", func(ed *edit.Editor, x program.Var) program.Var { return ed.Sum("", x) }},
}

func magnitudes(ed *edit.Editor, x program.Var) program.Var  { return ed.Max(x, ed.Neg(x)) }
func eachSquared(ed *edit.Editor, x program.Var) program.Var { return ed.Mul("", x, x) }
func centred(ed *edit.Editor, x program.Var) program.Var     { return ed.Sub("", x, ed.Mean("", x)) }

// statisticOf is the statistic with a name of the rows of a value; not ok for a name without a statistic.
func statisticOf(ed *edit.Editor, name string, x program.Var) (program.Var, bool) {
	k := slices.IndexFunc(statistics, func(f statistic) bool { return f.name == name })
	if k < 0 || len(x.Shape) == 0 {
		return program.Var{}, false
	}
	return statistics[k].of(ed, x), true
}

// byStatistic multiplies or divides a number of the formula by a statistic of each row of an operand, or puts a multiple of the statistic in its place.
func byStatistic(s *subject, e *Entry, m Mistake) *program.Edited {
	at, read, ok := twoPlaces(s, e, m)
	if !ok {
		return nil
	}
	return s.at(e, at, func(ed *edit.Editor, own program.Var) program.Var {
		x, ok := statisticOf(ed, m.For.Name, read)
		shape := shapeOfRows(program.Size(x.Shape), own.Shape)
		if !ok || shape == nil {
			return ed.Fail("shapes")
		}
		x = ed.Reshape(x, shape...)
		switch m.Kind {
		case "number.times-statistic":
			return ed.Mul("", own, x)
		case "number.over-statistic":
			return ed.Div("", own, x)
		}
		if m.X.Has {
			x = ed.Mul("", x, ed.Literal(m.X.Value))
		}
		return ed.Expand(x, own.Shape)
	})
}

// shapeOfRows is a shape with one number for each row of a value with another shape, which the rows fill in order: the first axes of the value. It is nil if
// no first axes count the rows.
func shapeOfRows(rows int, shape []int) []int {
	for k := range len(shape) + 1 {
		if program.Size(shape[:k]) == rows {
			return append(slices.Clone(shape[:k]), slices.Repeat([]int{1}, len(shape)-k)...)
		}
	}
	return nil
}
