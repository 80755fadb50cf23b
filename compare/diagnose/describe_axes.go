package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
)

// axis is one along which numbers may differ.
type axis struct {
	counts string
	index  func(o *observed, i int) int // of an element
	size   int
	last   bool // it is the last one of the value
	made   bool // it is read off other axes
}

// axesIn are the axes of some values with more than one index, and that of the layers of their entries. Tokens are told apart over passes, too.
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
			axes = append(axes, axis{counts: oneOf(letter), size: most, last: k == len(first.axes)-1, index: func(o *observed, i int) int {
				return firstIndex(s, o, letter) + i/product(o.shape[k+1:])%o.shape[k]
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
	if len(names) > 1 {
		axes = append(axes, axis{counts: layerAxis, size: len(names), index: func(o *observed, _ int) int { return slices.Index(names, s.m.List.Entries[o.e.Node.Entry].Name) }})
	}
	return axes
}

// headsIn is the axis of heads, where the channels of several heads stand one behind the other; none where the heads have an axis, and where there is one head.
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
	return []axis{{counts: oneOf(order.AxisHead), size: first.shape[last] / size, made: true, index: func(o *observed, i int) int { return channel.index(o, i) / size }}}
}

// firstIndex is what the indexes of an axis begin with in a pass: those of tokens with the position of the first.
func firstIndex(s *search, o *observed, letter byte) int {
	if letter != order.AxisToken {
		return 0
	}
	return s.m.Passes[o.e.Node.Pass].Past
}

// byAxes describes values by factors or terms: one number, one for each index of an axis, or one for each pair of indexes of two axes. It takes the fewest numbers that explain the
// values, and is nil if none do.
func byAxes(s *search, all []observed, of Term) *Description {
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
		for _, f := range []fit{{kind: "described.factor", right: 1}, {kind: "described.addend", right: 0}} {
			f.of(all, axes, set)
			if n := len(f.groups); f.explains() && (best == nil || n < best.Numbers) {
				best = descriptionOf(s, &f, axes, set, of)
			}
		}
	}
	return best
}

// rowsIn are the axes that tell rows apart: all but the last one, and but those that are read off others.
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
	d := &Description{Kind: f.kind, Of: of, Explained: f.explained, Elements: f.elements, Numbers: len(f.groups), Wrong: f.apartGroups}
	var by, same []string
	for a, x := range axes {
		if slices.Contains(set, a) {
			by = append(by, x.counts)
		} else {
			same = append(same, x.counts)
		}
	}
	d.By, d.Same = listed(by), listed(same)
	for _, key := range f.keys() { // those that are not right say most
		if g := f.groups[key]; len(d.Values) < mostValues && !g.has(f.right) {
			d.Values = append(d.Values, g.middle())
		}
	}
	if len(set) > 0 {
		d.Kind += "s"
		if len(set) == 1 && axes[set[0]].size == len(f.groups) {
			d.Like = weightLike(s, f)
		}
		return d
	}
	g := f.groups[0]
	if n := s.candidates(g.middle(), g.low, g.high)[0]; n.value >= g.low && n.value <= g.high {
		d.Values, d.Called = []float64{n.value}, n.words
	}
	if x, of := ofFormula(s, f); of.Kind != "" {
		d.Values, d.Called, d.Like = []float64{x}, "", of
	}
	return d
}

// mostOfFormula is how far apart the ends are, for each unit of its size, between which a factor lies that is said to be of a number of the formula: between others any number may be.
const mostOfFormula = 0.01

// ofFormula is the factor of a fit that is a number of the formula or its reciprocal, with the number: as where its step is left out, or taken twice. The term is empty where no number,
// or more than one, is it.
func ofFormula(s *search, f *fit) (x float64, of Term) {
	g := f.groups[0]
	if f.right == 0 || g.high-g.low > mostOfFormula*math.Abs(g.middle()) {
		return 0, Term{}
	}
	t := s.first.signed(s.m)
	for _, i := range t.Numbers() {
		c := t.Steps[i].Value
		for _, is := range []Term{{Kind: Constant, X: c}, {Kind: ItsReciprocal, X: 1 / c}} {
			if v := is.X; !(v >= g.low && v <= g.high) || v == 1 || of.Kind != "" && v == x {
				continue
			} else if of.Kind != "" {
				return 0, Term{}
			}
			x, of = is.X, Term{Kind: is.Kind, Name: s.numberWords(t.Program, i).String(), X: c}
		}
	}
	return x, of
}

// weightLike is a vector of the layer of the first entry, or of none, that has the numbers of a fit, or one more than they, or their reciprocals.
func weightLike(s *search, f *fit) Term {
	keys := f.keys()
	own := s.m.List.Entries[s.first.Node.Entry].Name
	seen := map[string]bool{}
	for k := range s.m.List.Entries {
		for _, w := range s.m.List.Entries[k].Weights {
			a, in := layerOf(w.Name)
			if b, _ := layerOf(own); seen[w.Name] || len(w.Shape) != 1 || w.Shape[0] != len(keys) || in && a != b {
				continue
			}
			seen[w.Name] = true
			x, ok := vectorOf(s.subject, s.first, w.Name)
			if !ok {
				continue
			}
			if f.has(keys, x) {
				return weightTerm(w.Name)
			}
			for i := range x {
				x[i]++
			}
			if f.has(keys, x) {
				return Term{Kind: OnePlus, Name: Role(w.Name)}
			}
		}
	}
	return Term{}
}

// keys are the indexes of the groups, in order.
func (f *fit) keys() []int {
	var all []int
	for key := range f.groups {
		all = append(all, key)
	}
	slices.SortFunc(all, cmp.Compare[int])
	return all
}
