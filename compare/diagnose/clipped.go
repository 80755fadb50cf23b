package diagnose

import (
	"iter"
	"math"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// clips are limits of a result: on both sides, below, and above. Elements at the limit have the largest size.
var clips = []struct {
	kind Kind
	size func(y float64) float64
}{
	{"result.clamped", math.Abs},
	{"result.clipped-below", func(y float64) float64 { return -y }},
	{"result.clipped-above", func(y float64) float64 { return y }},
}

// clippings yields limits of the result. A limit is the element of largest size among the unexplained elements, if enough elements have this size.
func clippings(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, c := range clips {
			limit, n := math.Inf(-1), 0
			for _, e := range s.entries {
				y, _ := e.Target()
				for _, i := range e.Left {
					switch v := c.size(y[i]); {
					case v > limit:
						limit, n = v, 1
					case v == limit:
						n++
					}
				}
			}
			if n < shownElements || math.IsInf(limit, 0) || limit == 0 || insideLimit(s, c.size, limit) < shownElements {
				continue
			}
			if !yield(Mistake{Kind: c.kind, X: some(c.size(limit))}) || c.kind == "result.clamped" && len(s.found) > 0 {
				return
			}
		}
	}
}

// insideLimit counts the elements of the entries inside of a limit. A result with one number everywhere is not a result with a limit.
func insideLimit(s *search, size func(y float64) float64, limit float64) (n int) {
	for _, e := range s.entries {
		y, _ := e.Target()
		for _, v := range y {
			if size(v) < limit {
				n++
			}
		}
	}
	return n
}

// leastWhole is how many different magnitudes whole results have at least: many mistakes give results of 0 and 1.
const leastWhole = 3

// wholeResults yields a result that is rounded to whole numbers, or cut to whole numbers, if all its unexplained elements are whole, with several numbers.
func wholeResults(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		different := map[float64]bool{}
		for _, e := range s.entries {
			y, _ := e.Target()
			for _, i := range e.Left {
				if y[i] != math.Trunc(y[i]) {
					return
				}
				if len(different) < leastWhole {
					different[math.Abs(y[i])] = true
				}
			}
		}
		if len(different) < leastWhole {
			return
		}
		m := Mistake{Kind: "value.on-grid", Of: theResult, X: some(1), Edit: placed(edit.Place{Arg: result})}
		if !yield(m) {
			return
		}
		m.Rounding = TowardZero
		yield(m)
	}
}

// cutOff gives the result a lower limit, an upper limit, or both.
func cutOff(_ *subject, e *Entry, m Mistake) *program.Edited {
	ed, y := edit.NewEditor(e.Program), e.Program.Out
	least := m.X.Value
	if m.Kind == "result.clamped" {
		least = -least
	}
	if m.Kind != "result.clipped-above" {
		y = ed.Max(y, ed.Literal(least))
	}
	if m.Kind != "result.clipped-below" {
		y = ed.Neg(ed.Max(ed.Neg(y), ed.Literal(-m.X.Value)))
	}
	ed.Return(y)
	return ended(ed)
}
