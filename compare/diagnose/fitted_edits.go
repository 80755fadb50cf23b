package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// fittedNumbers multiplies a value by the numbers of a mistake along axes, or adds the numbers.
func fittedNumbers(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		x, ok := alongAxis(s, e, v.Shape, m)
		if !ok {
			return ed.Fail("shapes")
		}
		r := ed.R
		if m.Rounding == Unstored {
			r = func(v program.Var) program.Var { return v }
		}
		if m.Kind == "addends.inserted" {
			return r(ed.Add("", v, ed.Other(x)))
		}
		return r(ed.Mul("", v, ed.Other(x)))
	})
}

// twoPlaces are the place of a mistake, and the operand at its other place. It is not ok for another count of places, or if several steps are at the other
// place.
func twoPlaces(s *subject, e *Entry, m Mistake) (at edit.Place, from program.Var, ok bool) {
	d, ok := s.edit(m)
	if !ok || len(d.At) != 2 {
		return at, from, false
	}
	t := e.signed(s.m)
	other := d.At[1]
	copies := t.Copies(other)
	if len(copies) != 1 || other.Arg < 0 || other.Arg >= len(t.Steps[copies[0]].Args) {
		return at, from, false
	}
	return d.At[0], t.Steps[copies[0]].Args[other.Arg], true
}

// alongIndex is one of the axes of [Mistake.Axis] in a value; of returns the index along the axis for the indexes of an element.
type alongIndex struct {
	size int
	of   func(at []int) int
}

// alongAxis returns the numbers of a mistake in the shape of a value. Axes that the mistake does not name have size 1. If heads have no
// axis, each head has a run of channels, and every channel gets the number of the head. If layers have different numbers, the value gets
// the numbers of the entry's layer.
func alongAxis(s *subject, e *Entry, shape []int, m Mistake) (v program.Value, ok bool) {
	numbers := m.Numbers.list()
	v.Shape = slices.Repeat([]int{1}, len(shape))
	var all []alongIndex
	count := 1
	for name := range strings.SplitSeq(m.Axis, axisSeparator) {
		own := len(numbers) / count
		if name != layersAxis && strings.HasSuffix(m.Axis, axisSeparator+layersAxis) {
			own /= max(s.m.List.Config.NumLayers, 1)
		}
		x := alongOne(s, e, shape, name, v.Shape, own)
		if x.of == nil || len(shape) == 0 {
			return v, false
		}
		all = append(all, x)
		count *= x.size
	}
	if count != len(numbers) {
		return v, false
	}
	v.Data = make([]float64, program.Size(v.Shape))
	at := make([]int, len(shape))
	for i := range v.Data {
		for k, rest := len(shape)-1, i; k >= 0; k-- {
			at[k], rest = rest%v.Shape[k], rest/v.Shape[k]
		}
		n := 0
		for _, x := range all {
			n = n*x.size + x.of(at)
		}
		v.Data[i] = numbers[n]
	}
	return v, true
}

// alongOne finds an axis by its name among the axes of a value, and sets the size of the axis in the shape of the numbers. The result has no function if
// the value has no such axis. If heads have no axis, the count of numbers is the count of heads.
func alongOne(s *subject, e *Entry, shape []int, name string, size []int, numbers int) alongIndex {
	entry, last := &s.m.List.Entries[e.Node.Entry], len(shape)-1
	if layer := entry.Layer; name == layersAxis {
		if layer < 0 || layer >= s.m.List.Config.NumLayers {
			return alongIndex{}
		}
		return alongIndex{s.m.List.Config.NumLayers, func([]int) int { return layer }}
	}
	if len(entry.Axes) != len(shape) {
		return alongIndex{}
	}
	for k := range shape {
		if axisWords(entry.Axes[k]) == name && shape[k] > 1 {
			size[k] = shape[k]
			return alongIndex{shape[k], func(at []int) int { return at[k] }}
		}
	}
	if name != headsAxis || strings.IndexByte(entry.Axes, order.AxisHead) >= 0 || entry.Axes[last] != order.AxisChannel || numbers < 1 || shape[last]%numbers != 0 {
		return alongIndex{}
	}
	size[last] = shape[last]
	each := shape[last] / numbers
	return alongIndex{numbers, func(at []int) int { return at[last] / each }}
}

// ofLayerWeights uses all weights of another layer.
func ofLayerWeights(s *subject, e *Entry, m Mistake) *program.Edited {
	return layerWeights(s, e, m.By.Name)
}

// wholeNumbers puts whole numbers in place of inputs.
func wholeNumbers(s *subject, e *Entry, m Mistake) *program.Edited {
	t := e.signed(s.m)
	var places []edit.Place
	roles := strings.Split(m.Of.Name, ",")
	for _, i := range leafSteps(t, program.Input) {
		if slices.Contains(roles, order.NameOf(s.m.List.Entries[e.Inputs[t.Steps[i].Index()].Entry].Name).Role()) {
			places = append(places, t.PlaceOf(i))
		}
	}
	if len(places) == 0 {
		return nil
	}
	whole := math.RoundToEven
	if m.Kind == "input.truncated" {
		whole = math.Trunc
	}
	return wholeAt(s, e, places, whole)
}

// otherValue puts a captured tensor in place of a value within the operation.
func otherValue(s *subject, e *Entry, m Mistake) *program.Edited {
	v, ok := s.tensor(e, source{name: s.here(m.Source, e)})
	if !ok {
		return nil
	}
	return s.at(e, s.place(m), func(ed *edit.Editor, x program.Var) program.Var {
		if program.Size(x.Shape) != len(v.Data) {
			return ed.Fail("shapes")
		}
		return ed.Other(program.Value{Shape: x.Shape, Data: v.Data})
	})
}

// addedSlopes adds a slope times an index to a value: one slope, or a slope for each head. See [indexesAlong].
func addedSlopes(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		shape := v.Shape
		x := program.Value{Shape: slices.Repeat([]int{1}, len(shape)), Data: m.Numbers.list()}
		ok := m.Axis != "" || len(x.Data) == 1
		if m.Axis != "" {
			x, ok = alongAxis(s, e, shape, m)
		}
		index, has := indexesAlong(s, e, shape, m)
		if !ok || !has {
			return ed.Fail("shapes")
		}
		return ed.R(ed.Add("", v, ed.Mul("", ed.Other(index), ed.Other(x))))
	})
}

// The ways to count the keys that a slope grows along.
const (
	fromFirst = iota // the index of the key, or the position of the token
	fromQuery        // the index of the key less the position of the query
	fromLast         // the index of the key less the index of the last key
)

// indexesAlong are the indexes that a slope is multiplied by, counted as N says.
func indexesAlong(s *subject, e *Entry, shape []int, m Mistake) (v program.Value, ok bool) {
	axes := s.m.List.Entries[e.Node.Entry].Axes
	token, along := strings.IndexByte(axes, order.AxisToken), strings.IndexFunc(axes, func(r rune) bool { return axisWords(byte(r)) == m.Other })
	if len(axes) != len(shape) || along < 0 || m.N == fromQuery && (token < 0 || token == along) {
		return v, false
	}
	v.Shape = slices.Repeat([]int{1}, len(shape))
	v.Shape[along] = shape[along]
	past, queries := s.m.Passes[e.Node.Pass].Past, 1
	if m.N == fromQuery {
		v.Shape[token], queries = shape[token], shape[token]
	}
	v.Data = make([]float64, queries*shape[along])
	for q := range queries {
		for k := range shape[along] {
			switch i := q*shape[along] + k; {
			case m.N == fromFirst && along == token:
				v.Data[i] = float64(past + k)
			case m.N == fromFirst:
				v.Data[i] = float64(k)
			case m.N == fromLast:
				v.Data[i] = float64(k - shape[along] + 1)
			case token < along:
				v.Data[i] = float64(k - past - q)
			default:
				v.Data[k*queries+q] = float64(k - past - q)
			}
		}
	}
	return v, true
}

// blockedWeight multiplies a matrix by a factor for each input, or for each block of M rows and K columns, or adds a constant for each block. If layers have
// different numbers, it takes the numbers of the entry's layer.
func blockedWeight(s *subject, e *Entry, m Mistake) *program.Edited {
	numbers := ownNumbers(s, e, m)
	return reweighted(e, func(_ int, w program.Rows) program.Rows {
		rows, cols := w.Size()
		if m.M < 1 || m.K < 1 || cols%m.K != 0 || len(numbers) != (rows+m.M-1)/m.M*(cols/m.K) {
			return nil
		}
		return changedRows(w, func(i int, row []float64) {
			of := numbers[i/m.M*(cols/m.K):]
			for c := range row {
				if m.Kind == shiftedBlocks {
					row[c] += of[c/m.K]
				} else {
					row[c] *= of[c/m.K]
				}
			}
		})
	}, m.Place)
}

// ownNumbers are the numbers of a mistake in the layer of an entry: all numbers if the mistake has no axis of layers, and no numbers for an entry outside
// of layers.
func ownNumbers(s *subject, e *Entry, m Mistake) []float64 {
	all, layer, layers := m.Numbers.list(), s.m.List.Entries[e.Node.Entry].Layer, s.m.List.Config.NumLayers
	if m.Axis != layersAxis {
		return all
	}
	if layer < 0 || layer >= layers || len(all)%layers != 0 {
		return nil
	}
	each := len(all) / layers
	return all[layer*each:][:each]
}
