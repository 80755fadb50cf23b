package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// axis is an axis along which numbers may differ.
type axis struct {
	counts string
	letter byte                              // the letter of the noun; 0 for layers and distances
	index  func(o *observed) func(i int) int // of an element of a value, along the axis
	size   int
	last   bool // the last axis of the value
	made   bool // computed from the indexes of other axes
}

// axesIn are the axes with several indexes in some values, and the axis of the layers of their entries. Tokens of different passes have different indexes.
func axesIn(s *search, all []observed) []axis {
	var axes []axis
	first := &all[0]
	for k := range first.axes {
		letter, most := first.axes[k], 0
		for n := range all {
			o := &all[n]
			if o.axes != first.axes {
				return nil
			}
			most = max(most, firstIndex(s, o, letter)+o.shape[k])
		}
		if most > 1 {
			axes = append(axes, axis{counts: oneOf(letter), letter: letter, size: most, last: k == len(first.axes)-1, index: func(o *observed) func(i int) int {
				first, along := firstIndex(s, o, letter), o.along(k)
				return func(i int) int { return first + along(i) }
			}})
		}
	}
	axes = append(axes, headsIn(s, first, axes)...)
	var names []string
	for n := range all {
		if name := s.m.List.Entries[all[n].e.Node.Entry].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if d, ok := distanceAxis(s, all); ok {
		axes = append(axes, d)
	}
	if layers := s.m.List.Config.NumLayers; len(names) > 1 && !slices.ContainsFunc(all, func(o observed) bool { return layerOf(s.subject, &o) < 0 || layerOf(s.subject, &o) >= layers }) {
		axes = append(axes, axis{counts: layerAxis, size: layers, index: func(o *observed) func(i int) int {
			n := layerOf(s.subject, o)
			return func(int) int { return n }
		}})
	}
	return axes
}

// layerOf is the layer of a value's entry, from 0; below 0 for an entry outside of layers.
func layerOf(s *subject, o *observed) int { return s.m.List.Entries[o.e.Node.Entry].Layer }

// along returns the index of an element along an axis of the value.
func (o *observed) along(axis int) func(i int) int {
	stride, size := program.Size(o.shape[axis+1:]), o.shape[axis]
	return func(i int) int { return i / stride % size }
}

// grouping is a partition of elements: for each value, the group of each element. Groups are numbered in the order of their indexes along the axes; a
// group may have no element.
type grouping struct {
	of    [][]int
	count int // of groups, with or without elements
}

// mostGroups is the largest count of groups: four for each element that is looked at.
const mostGroups = 4 * mostDescribed

// groupsBy puts the elements with the same indexes along some axes in one group. It is not ok for more than [mostGroups].
func groupsBy(axes []axis, set []int, all []observed) (g grouping, ok bool) {
	g.count = 1
	for _, a := range set {
		if g.count *= axes[a].size; g.count > mostGroups {
			return grouping{}, false
		}
	}
	g.of = make([][]int, len(all))
	for n := range all {
		g.of[n] = make([]int, len(all[n].want))
		for _, a := range set {
			index := axes[a].index(&all[n])
			for i, key := range g.of[n] {
				g.of[n][i] = key*axes[a].size + index(i)
			}
		}
	}
	return g, true
}

// headsIn is the axis of heads, where one axis has the channels of all heads, head after head. It is empty where heads have an axis, and for a single
// head.
func headsIn(s *search, first *observed, axes []axis) []axis {
	last, c := len(first.axes)-1, s.m.List.Config
	size := c.HeadDim
	if last < 0 || size < 2 || first.axes[last] != order.AxisChannel || strings.IndexByte(first.axes, order.AxisHead) >= 0 {
		return nil
	}
	if n := first.shape[last] / size; first.shape[last]%size != 0 || n < 2 || n != c.NumHeads && n != c.NumKVHeads {
		return nil
	}
	channel := axes[len(axes)-1]
	return []axis{{counts: oneOf(order.AxisHead), letter: order.AxisHead, size: first.shape[last] / size, made: true, index: func(o *observed) func(i int) int {
		of := channel.index(o)
		return func(i int) int { return of(i) / size }
	}}}
}

// firstIndex is the first index of an axis in a pass: the position of the first token for an axis of tokens, else 0.
func firstIndex(s *search, o *observed, letter byte) int {
	if letter != order.AxisToken {
		return 0
	}
	return s.m.Passes[o.e.Node.Pass].Past
}

// byAxes describes values by factors or addends: one number, a number for each index of an axis, for each pair of indexes of two axes, or for each row. It
// takes the fewest numbers that explain the values, and is nil if no numbers do.
func byAxes(s *search, all []observed, of Term, at edit.Place) *Description {
	axes := axesIn(s, all)
	sets := [][]int{nil}
	for a := range axes {
		sets = append(sets, []int{a})
	}
	for a := range axes {
		for b := range a {
			sets = append(sets, []int{b, a})
		}
	}
	if rows := rowsIn(axes); len(rows) > 2 {
		sets = append(sets, rows)
	}
	var best *Description
	for _, set := range sets {
		groups, ok := groupsBy(axes, set, all)
		if !ok {
			continue
		}
		for _, f := range []fit{{kind: "described.factor", right: 1}, {kind: "described.addend", right: 0}} {
			if f.of(all, groups); f.explains() && (best == nil || f.numbers < best.Numbers) {
				best = descriptionOf(s, &f, axes, set, of)
				s.draft(best).proposes = f.proposals(s, axes, set, best, at)
			}
		}
	}
	return best
}

// rowsIn are the axes that number rows: not the last axis, and no axis that is computed from other axes.
func rowsIn(axes []axis) (set []int) {
	for a, x := range axes {
		if !x.last && !x.made {
			set = append(set, a)
		}
	}
	return set
}

// descriptionOf is the description of numbers that were fitted along some axes.
func descriptionOf(s *search, f *fit, axes []axis, set []int, of Term) *Description {
	d := &Description{Kind: f.kind, Of: of, Explained: f.explained, Elements: f.elements, Numbers: f.numbers, Wrong: f.apartGroups}
	var by, same []string
	for a, x := range axes {
		if slices.Contains(set, a) {
			by = append(by, x.counts)
		} else {
			same = append(same, x.counts)
		}
	}
	d.By, d.Same = listed(by), listed(same)
	for k := range f.groups { // the wrong numbers say most
		if g := &f.groups[k]; g.n > 0 && len(d.Values) < mostValues && !g.has(f.right) {
			d.Values = append(d.Values, g.middle())
		}
	}
	if len(set) > 0 {
		d.Kind += "s"
		if len(set) == 1 && axes[set[0]].letter != 0 && axes[set[0]].size == f.numbers {
			d.Like, s.draft(d).weight = weightLike(s, f)
		}
		return d
	}
	g := &f.groups[0]
	if n := s.candidates(g.middle(), g.low, g.high)[0]; n.value >= g.low && n.value <= g.high {
		d.Values, d.Called = []float64{n.value}, n.words
	}
	if x, of := ofFormula(s, f); of.Kind != "" {
		d.Values, d.Called, d.Like = []float64{x}, "", of
	}
	return d
}

// mostOfFormula is the largest relative width of a factor's interval in which a number of the formula means something. A wider interval may have any
// number by chance.
const mostOfFormula = 0.01

// ofFormula is the number of the formula, or its reciprocal, that lies in the interval of a factor: the step of the number may be missing or applied
// twice. The term is empty if no number, or more than one, lies there.
func ofFormula(s *search, f *fit) (x float64, of Term) {
	g := &f.groups[0]
	if f.right == 0 || g.high-g.low > mostOfFormula*math.Abs(g.middle()) {
		return 0, Term{}
	}
	t := s.first.signed(s.m)
	for _, i := range t.Numbers() {
		c := t.Steps[i].Number().Value
		for _, is := range []Term{{Kind: Constant, X: c}, {Kind: ItsReciprocal, X: 1 / c}} {
			if v := is.X; !(v >= g.low && v <= g.high) || v == 1 || of.Kind != "" && v == x {
				continue
			} else if of.Kind != "" {
				return 0, Term{}
			}
			x, of = is.X, Term{Kind: is.Kind, Name: numberTerm(s.subject, t.Program, i).String(), X: c}
		}
	}
	return x, of
}

// weightLike is a vector of the first entry's layer, or of no layer, that has the numbers of a fit, or has them after 1 is added.
func weightLike(s *search, f *fit) (like Term, name string) {
	own := order.NameOf(s.m.List.Entries[s.first.Node.Entry].Name)
	seen := map[string]bool{}
	for k := range s.m.List.Entries {
		for _, w := range s.m.List.Entries[k].Weights {
			weight := order.NameOf(w.Name)
			if seen[w.Name] || len(w.Shape) != 1 || w.Shape[0] != len(f.groups) || weight.Within() && !weight.SameLayer(own) {
				continue
			}
			seen[w.Name] = true
			x, ok := vectorOf(s.subject, s.first, w.Name)
			if !ok {
				continue
			}
			if f.has(x) {
				return weightTerm(w.Name), w.Name
			}
			for i := range x {
				x[i]++
			}
			if f.has(x) {
				return Term{Kind: OnePlus, Name: weight.Role()}, w.Name
			}
		}
	}
	return Term{}, ""
}
