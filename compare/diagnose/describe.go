package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// A Description says how tensors that no mistake explains differ from what their operation gives. It is read off the numbers: no name, and no proof of
// what the port does. The row of its kind in the catalogue makes the sentence.
type Description struct {
	Kind Kind `json:"kind"`
	// Of is what differs: the result, or a value within the operation.
	Of Term `json:"of"`
	// By lists the axes along which the numbers differ, by what the axes count; it is empty for one number. Same lists the other axes.
	By   string `json:"by,omitempty"`
	Same string `json:"same_for,omitempty"`
	// Values are the first numbers that are not right, in the order of their indexes.
	Values []float64 `json:"values,omitempty"`
	// Called are the fields of the configuration, or functions of them, that are the only number.
	Called string `json:"called,omitempty"`
	// Like has the same numbers: it is a weight, a number of the formula, the reciprocal of such a number, or a captured tensor.
	Like Term `json:"like,omitzero"`
	// Explained of Elements are as the description says. Numbers counts the numbers that were fitted to them.
	Explained int `json:"explained"`
	Elements  int `json:"elements"`
	Numbers   int `json:"numbers,omitempty"`
	// Wrong counts the numbers that are not those of a right value. Values are the first of these.
	Wrong int `json:"wrong_numbers,omitempty"`
}

// like reports whether two descriptions are of one kind of difference, be its numbers others. Either may be nil.
func (d *Description) like(other *Description) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.Kind == other.Kind && d.Of.same(other.Of) && d.By == other.By && d.Same == other.Same && d.Like == other.Like
}

const (
	mostDescribed = 1 << 20 // elements that are looked at
	mostValues    = 6       // numbers that are listed
	leastShare    = 0.97    // of the elements that a description has to explain: saturated and cancelled values fit nothing
	leastAGroup   = 3       // elements for each number that is fitted
)

// observed is a value of one entry: what it should be, and what it would have to be for the entry to be the trace's tensor.
type observed struct {
	value, off []float64 // what it should be, and by how much that may be off
	want, half []float64 // what it would have to be, and by how much that may be off
	shape      []int
	axes       string // what the axes count, by their letters; as many as axes, or none
	e          *Entry
}

// describe describes the entries of a search that has found no name. It is nil where nothing simple holds.
func describe(s *search) (*Description, error) {
	results, err := results(s)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	if d, err := wholeInputs(s); d != nil || err != nil {
		return d, err
	}
	if d := zeroedResults(results); d != nil {
		return d, nil
	}
	if d := onGrid(s, results, theResult); d != nil {
		return d, nil
	}
	best := byAxes(s, results, theResult)
	for _, inner := range requiredValues(s, results) {
		if d := captive(s, inner.all, inner.of); d != nil || s.err != nil {
			return d, s.err
		}
		d := byAxes(s, inner.all, inner.of)
		if s.err != nil {
			return nil, s.err
		}
		if d != nil && (best == nil || d.Numbers < best.Numbers) {
			best = d
		}
	}
	if best != nil {
		return best, nil
	}
	return describeOperand(s, results)
}

// results are the results of the entries, the small ones first, up to [mostDescribed] elements.
func results(s *search) (all []observed, err error) {
	n := 0
	for _, e := range s.entries {
		e = e.Small()
		x, y, half, err := e.own()
		s.whole(e.Program)
		if err != nil {
			return nil, outside(err)
		}
		if n += len(y); n > mostDescribed && len(all) > 0 || len(x.Data) != len(y) {
			break
		}
		o := observed{value: x.Data, off: make([]float64, len(y)), want: y, half: half, shape: x.Shape, e: e}
		copy(o.off, x.Bound)
		if axes := s.m.List.Entries[e.Node.Entry].Axes; len(axes) == len(x.Shape) {
			o.axes = axes
		}
		all = append(all, o)
	}
	return all, nil
}

// own is the result of the entry's own program beside the trace's tensor, with half the distance between two numbers of its dtype: of the few tokens that a search looks at
// first, where the entry is large.
func (e *Entry) own() (x program.Value, y, half []float64, err error) {
	call := e.Call
	call.Choices = e.Choices(e.Program)
	y, half = e.Target()
	if few := e.Few; few != nil && len(few.Left) > 0 {
		call.Some = &few.Some
		y, half = few.Target()
	}
	x, err = e.Program.Eval(call)
	return x, y, half, err
}

// zeroedResults describes entries a quarter of whose wrong elements or more are 0, where they should not be.
func zeroedResults(all []observed) *Description {
	d := &Description{Kind: "described.zeros", Of: theResult}
	for _, o := range all {
		for i, y := range o.want {
			if math.Abs(y-o.value[i]) <= o.half[i]+o.off[i] {
				continue
			}
			if d.Elements++; y == 0 {
				d.Explained++
			}
		}
	}
	if d.Explained < shownElements || 4*d.Explained < d.Elements {
		return nil
	}
	return d
}

// axis is one along which numbers may differ.
type axis struct {
	counts string
	index  func(o *observed, i int) int // of an element
	size   int
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
			axes = append(axes, axis{strings.TrimSuffix(axisWords(letter), "s"), func(o *observed, i int) int {
				return firstIndex(s, o, letter) + i/product(o.shape[k+1:])%o.shape[k]
			}, most})
		}
	}
	axes = append(axes, headsIn(s, first, axes)...)
	var names []string
	for n := range all {
		if name := s.m.List.Entries[all[n].e.Node.Entry].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 1 {
		axes = append(axes, axis{"layer", func(o *observed, _ int) int { return slices.Index(names, s.m.List.Entries[o.e.Node.Entry].Name) }, len(names)})
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
	return []axis{{"head", func(o *observed, i int) int { return channel.index(o, i) / size }, first.shape[last] / size}}
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
