package diagnose

import (
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// positionFunctions are functions of a position, from 0, that values may be multiplied by.
var positionFunctions = map[string]func(p float64) float64{
	"log(p)":     math.Log,
	"log(1+p)":   math.Log1p,
	"p":          func(p float64) float64 { return p },
	"1+p":        func(p float64) float64 { return 1 + p },
	"√(1+p)":     func(p float64) float64 { return math.Sqrt(1 + p) },
	"1/(1+p)":    func(p float64) float64 { return 1 / (1 + p) },
	"1/√(1+p)":   func(p float64) float64 { return 1 / math.Sqrt(1+p) },
	"1+log(1+p)": func(p float64) float64 { return 1 + math.Log1p(p) },
}

// byPosition describes results that are multiplied by a number times a function of the token's position: everywhere, or where the product exceeds 1.
func byPosition(x *difference) *Description {
	axes := axesIn(x.search, x.results)
	at := slices.IndexFunc(axes, func(a axis) bool { return a.letter == order.AxisToken })
	if at < 0 {
		return nil
	}
	f := fit{kind: "described.factor", right: 1}
	groups, ok := groupsBy(axes, []int{at}, x.results)
	if !ok {
		return nil
	}
	if f.of(x.results, groups); !f.explains() {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(positionFunctions)) {
		for _, least := range []int{0, 1} {
			low, high, ok := f.times(positionFunctions[name], least > 0)
			if !ok {
				continue
			}
			d := &Description{Kind: "described.by-position", Of: theResult, Called: name, Explained: f.explained, Elements: f.elements, Numbers: 1, Wrong: 1}
			m := Mistake{Kind: "factor.by-position", Of: theResult, Other: name, N: least, Edit: placed(edit.Place{Arg: result})}
			if least > 0 {
				m.Kind = "factor.by-late-position"
			}
			for _, n := range overLogs(low, high) {
				m.X, m.Called = some(n.value), n.words
				x.draft(d).proposes = append(x.draft(d).proposes, m)
			}
			d.Values = []float64{low/2 + high/2}
			return d
		}
	}
	return nil
}

// times is the interval of a number whose product with a function of each position is the factor of the position. With a floor, a position has the factor
// 1 where the product is below 1.
func (f *fit) times(of func(p float64) float64, floor bool) (low, high float64, ok bool) {
	low, high = math.Inf(-1), math.Inf(1)
	told := 0
	for p := range f.groups {
		g := &f.groups[p]
		if g.n == 0 || floor && g.has(1) {
			continue
		}
		y := of(float64(p))
		if !(y > 0) || g.low > g.high {
			return 0, 0, false
		}
		low, high, told = max(low, g.low/y), min(high, g.high/y), told+1
	}
	if told < leastPositions || low > high {
		return 0, 0, false
	}
	for p := range f.groups {
		if g := &f.groups[p]; floor && g.n > 0 && g.has(1) && of(float64(p))*low > max(1, g.high) {
			return 0, 0, false
		}
	}
	return low, high, true
}

// overLogs are likely numbers between two bounds: 1 over the logarithm of a whole number, the shortest number, and the middle.
func overLogs(low, high float64) []number {
	var all []number
	if low > 0 {
		if n := math.Round(math.Exp(2 / (low + high))); n > 1 && n < math.MaxInt32 && 1/math.Log(n) >= low && 1/math.Log(n) <= high {
			all = append(all, number{value: 1 / math.Log(n), words: logWords(n), own: true})
		}
	}
	return append(all, number{value: shortest(low, high)}, number{value: low/2 + high/2})
}

// timesPosition multiplies a value by a number times a function of the token's position.
func timesPosition(s *subject, e *Entry, m Mistake) *program.Edited {
	axes, past := s.m.List.Entries[e.Node.Entry].Axes, s.m.Passes[e.Node.Pass].Past
	of := positionFunctions[m.Other]
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		shape := v.Shape
		at := slices.Index([]byte(axes), order.AxisToken)
		if of == nil || at < 0 || len(axes) != len(shape) {
			return ed.Fail("shapes")
		}
		by := program.Value{Shape: slices.Repeat([]int{1}, len(shape)), Data: make([]float64, shape[at])}
		by.Shape[at] = shape[at]
		for t := range by.Data {
			if by.Data[t] = m.X.Value * of(float64(past+t)); m.Kind == "factor.by-late-position" {
				by.Data[t] = max(by.Data[t], 1)
			}
		}
		return ed.R(ed.Mul("", v, ed.Other(by)))
	})
}
