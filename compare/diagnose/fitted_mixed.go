package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// A value may have a sum of its channels, heads or tokens in the place of each of them, with whole-number coefficients. The coefficients are the numbers
// of a mistake: a row for each index along the axis.

// mixedValue is the kind of these mistakes.
const mixedValue Kind = "value.mixed"

// mistakes are the mistake that a value is the mixture of the value at a place, or of itself without a place. Sums of tokens or keys hold for one
// prompt, and are no mistake.
func (x *mixture) mistakes(axis byte, of Term, at edit.Place, from ...edit.Place) []Mistake {
	if countsOfPass(axis) {
		return nil
	}
	m := Mistake{Kind: mixedValue, Of: of, Axis: axisWords(axis), Numbers: makeNumbers(x.coefs), Edit: placed(append([]edit.Place{at}, from...)...)}
	if len(from) > 0 {
		m.By = x.of
	}
	return []Mistake{m}
}

// coefficients returns a row of coefficients for each index of the axis. The result is nil if the count of numbers is not a square.
func (m Mistake) coefficients() [][]float64 {
	all := m.Numbers.list()
	for n := 1; n <= mostMixed; n++ {
		if n*n == len(all) {
			return slices.Collect(slices.Chunk(all, n))
		}
	}
	return nil
}

// coefficientsOf counts the coefficients of indexes that are not themselves.
func coefficientsOf(m Mistake) (n int) {
	for j, row := range m.coefficients() {
		if isUnit(row, j) {
			continue
		}
		n++
		for _, c := range row {
			if c != 0 {
				n++
			}
		}
	}
	return n
}

// mixes puts the mixture of a value in the place of a value.
func mixes(s *subject, e *Entry, m Mistake) *program.Edited {
	at, from, two := twoPlaces(s, e, m)
	switch {
	case two:
	case m.By != Term{}:
		return nil
	default:
		at = s.place(m)
	}
	return s.at(e, at, func(ed *edit.Editor, v program.Var) program.Var {
		if two && !slices.Equal(from.Shape, v.Shape) {
			return ed.Fail("shapes")
		} else if two {
			v = from
		}
		k := axisNamed(s, e, v.Shape, m.Axis)
		if k < 0 {
			return ed.Fail("axes")
		}
		rows := m.coefficients()
		if len(rows) != v.Shape[k] {
			return ed.Fail("numbers")
		}
		var all []program.Var
		for _, row := range rows {
			all = append(all, sumOf(ed, v, k, row))
		}
		return ed.Cat(k, all...)
	})
}

// axisNamed returns the axis of a value that counts the noun, or −1.
func axisNamed(s *subject, e *Entry, shape []int, noun string) int {
	axes := s.m.List.Entries[e.Node.Entry].Axes
	if len(axes) != len(shape) {
		return -1
	}
	return slices.IndexFunc([]byte(axes), func(letter byte) bool { return axisWords(letter) == noun })
}

// sumOf is the sum of the parts of a value along an axis, with coefficients.
func sumOf(ed *edit.Editor, v program.Var, axis int, coefs []float64) program.Var {
	var terms []program.Var
	for i, c := range coefs {
		if c == 0 {
			continue
		}
		part := ed.Slice(v, axis, i, i+1)
		if c != 1 {
			part = ed.Mul("", part, ed.Literal(c))
		}
		terms = append(terms, part)
	}
	if len(terms) == 0 {
		return ed.Mul("", ed.Slice(v, axis, 0, 1), ed.Literal(0))
	}
	sum := terms[0]
	for _, x := range terms[1:] {
		sum = ed.Add("", sum, x)
	}
	return sum
}
