package diagnose

import (
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// A configuration may have a number for each layer, such as a sparsity. If the port has the numbers of other layers, or computes the numbers
// differently, each layer is off by its own number.

// numbersOfLayers tries numbers of the formula that differ from layer to layer: the search solves for a number in each layer, then tries
// the numbers of all layers together.
func numbersOfLayers(s *search) error {
	layers := map[int][]*Entry{}
	for _, e := range s.entries {
		layer := s.m.List.Entries[e.Node.Entry].Layer
		layers[layer] = append(layers[layer], e)
	}
	if len(layers) < 2 || layers[-1] != nil {
		return s.err
	}
	of := map[string]map[int]ofPlace{} // by place, then by layer
	sorted := slices.Sorted(maps.Keys(layers))
	for k, layer := range sorted {
		for _, m := range inLayer(s, layers[layer]) {
			place := placed(m.place)
			if of[place] == nil && k == 0 {
				of[place] = map[int]ofPlace{}
			}
			if of[place] != nil {
				of[place][layer] = m
			}
		}
		if s.err != nil || s.spent() {
			return s.err
		}
	}
	for _, place := range slices.Sorted(maps.Keys(of)) {
		if len(of[place]) < len(layers) {
			continue
		}
		first := of[place][sorted[0]].is
		m := Mistake{Kind: "number.of-layers", Place: first.Place, Of: first.Of, Axis: layersAxis, Edit: place}
		numbers := slices.Repeat([]float64{math.NaN()}, s.m.List.Config.NumLayers)
		right := slices.Clone(numbers)
		for layer, x := range of[place] {
			numbers[layer], right[layer] = x.is.X.Value, x.is.Right.Value
		}
		m.Numbers, m.RightNumbers = makeNumbers(numbers), makeNumbers(right)
		if err := s.try(s.hypothesis(m)); err != nil {
			return err
		}
	}
	return s.err
}

// ofPlace is a mistake with another number, and the place of the number.
type ofPlace struct {
	is    Mistake
	place edit.Place
}

// inLayer lists mistakes of one number that give all entries of a layer.
func inLayer(s *search, entries []*Entry) (all []ofPlace) {
	sub := newSearch(s.ctx, s.m, entries)
	sub.subject, sub.tried = s.subject, s.tried
	t := sub.first.signed(sub.m)
	for _, i := range t.Numbers() {
		before := len(sub.found)
		solveFamily(sub, numberFamily(sub, t, i), func(m Mistake) bool {
			h := sub.hypothesis(m)
			h.solved = 1
			return !s.failed(sub.try(h))
		})
		if len(sub.found) > before {
			all = append(all, ofPlace{sub.found[before].is, t.PlaceOf(i)})
		}
	}
	s.tried, s.stopped = sub.tried, s.stopped || sub.stopped
	return all
}

// numberOfLayer puts the number of the entry's own layer into a formula.
func numberOfLayer(s *subject, e *Entry, m Mistake) *program.Edited {
	x := ownNumbers(s, e, m)
	if len(x) != 1 || math.IsNaN(x[0]) {
		return nil
	}
	return edit.Edit{Class: edit.Constant, At: []edit.Place{s.place(m)}, Value: x[0]}.Apply(e.signed(s.m))
}
