package diagnose

import (
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
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
	// Cases are the first single cases, in words: rows, queries, pairs of channels. There are more than six where the sentence ends with dots.
	Cases []string `json:"cases,omitempty"`
	// Where are the indexes of the axes at which alone something differs, in words; empty for all.
	Where string `json:"where,omitempty"`
	// Only is the condition on a value under which alone something differs, in words; empty for none.
	Only string `json:"only,omitempty"`
	// Zeros counts elements that are 0 and should not be, which the numbers leave out; ZerosAt says where they are.
	Zeros   int    `json:"zeros,omitempty"`
	ZerosAt string `json:"zeros_at,omitempty"`
	// Right are the layers and passes in which the same operation is right.
	Right string `json:"right_in,omitempty"`
}

// like reports whether two descriptions are of one kind of difference, be its numbers others. Either may be nil.
func (d *Description) like(other *Description) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.Kind == other.Kind && d.Of.same(other.Of) && d.By == other.By && d.Same == other.Same && d.Like.same(other.Like) && slices.Equal(d.Cases, other.Cases)
}

// vague are the kinds that say where something differs, and not how.
var vague = []Kind{"described.zeros", "described.data", "described.somewhere", "described.no-operand", "described.operand"}

// or is the description, or another one of the same entries that says how they differ where this one does not. Either may be nil.
func (d *Description) or(other *Description) *Description {
	if d == nil || other != nil && slices.Contains(vague, d.Kind) && !slices.Contains(vague, other.Kind) {
		return other
	}
	return d
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
	wrong      []bool // of a result: the elements that the arithmetic does not give; nil for a value within
	each       int    // elements of the result that one of the value was read off; 0 for one
	axes       string // what the axes count, by their letters; as many as axes, or none
	counted    []int  // the numbers of tokens and keys of the entry, which differ from pass to pass
	e          *Entry
}

// difference is what is described: the results of the entries of a search, and what is read off them once.
type difference struct {
	*search
	results []observed
	inners  func() []inner // see requiredValues
	bases   func() []base  // see basesOf; the first are the right results
	offered func() []string
}

// analysis is a way to describe a difference. It returns nil where the way does not hold.
type analysis struct {
	of       func(x *difference) *Description
	proposes bool // mistakes, of what it describes
}

// analyses are the ways to describe a difference: what says most comes first.
func analyses() []analysis {
	return []analysis{
		{of: otherKeys},
		{wholeInputs, true},
		{otherLayersWeights, true},
		{captiveResult, true},
		{of: rowsFromElsewhere},
		{of: resultOnGrid},
		{of: channelsFromElsewhere},
		{oneIndexed, true},
		{otherSums, true},
		{rankedRows, true},
		{byPosition, true},
		{inwards, true},
		{slopes, true},
		{of: turnedPairs},
		{movedPositions, true},
		{of: angledOtherwise},
		{of: mixtures},
		{of: restOfZeros},
		{otherHeads, true},
		{of: turnedFurther},
		{shiftedWeights, true},
		{of: lowRank},
		{ofTwoValues, true},
		{of: inFewBits},
		{describeOperand, true},
		{factorsOfInputs, true},
		{of: ofOneValue},
		{of: zeroedResults},
		{of: ofItsData},
		{of: somewhere},
	}
}

// describe describes the entries of a search that has found no name. It is nil where nothing simple holds, and where a mistake that a description proposes is found.
func describe(s *search) (*Description, error) {
	results, err := results(s)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	x := &difference{search: s, results: results}
	x.inners = sync.OnceValue(func() []inner { return requiredValues(s, results) })
	x.bases = sync.OnceValue(func() []base { return basesOf(s, results) })
	x.offered = sync.OnceValue(func() []string { return offeredTensors(s) })
	var best *Description // of those that only say where something differs, the first
	for _, a := range analyses() {
		said := best != nil && !slices.Contains(vague, best.Kind)
		if said && !(s.proposing && a.proposes) {
			continue
		}
		d := a.of(x)
		if s.err != nil {
			return nil, s.err
		}
		if d != nil && s.proposing && confirm(s, d) || s.err != nil {
			return nil, s.err
		}
		if !said {
			best = best.or(d)
		}
	}
	if best == nil {
		return nil, nil
	}
	if len(best.Cases) == 0 { // cases say it themselves
		best.Where = best.place(s, results)
	}
	if best.Numbers == 0 {
		best.Only = x.condition()
	}
	return best, s.err
}

// captiveResult is [captive] of the result.
func captiveResult(x *difference) *Description {
	return x.captive(x.results, theResult, edit.Place{Arg: result})
}

// resultOnGrid is [onGrid] of the result.
func resultOnGrid(x *difference) *Description { return onGrid(x.search, x.results, theResult) }

// inwards describes the result, or the value within the operation that takes the fewest numbers, of several the one with the fewest elements.
func inwards(x *difference) *Description {
	best, size := byAxes(x.search, x.results, theResult, edit.Place{Arg: result}), len(x.results[0].want)
	for _, inner := range x.inners() {
		if d := x.captive(inner.all, inner.of, inner.at); d != nil || x.err != nil {
			return d
		}
		if inner.number {
			continue
		}
		n := len(inner.all[0].want)
		if d := byAxes(x.search, inner.all, inner.of, inner.at); d != nil && (best == nil || d.Numbers < best.Numbers || d.Numbers == best.Numbers && n < size && !inner.repeated) {
			best, size = d, n
		}
	}
	return best
}

// results are the results of the entries that have the axes and sizes of the first, but for tokens and keys: the small ones first, up to [mostDescribed] elements. Entries of another shape,
// such as those of layers with fewer heads, are not described.
func results(s *search) (all []observed, err error) {
	n := 0
	for _, e := range s.entries {
		e = e.Small()
		x, y, half, err := e.own()
		s.whole(e.Program)
		if err != nil {
			return nil, outside(err)
		}
		if len(x.Data) != len(y) || len(y) != product(x.Shape) {
			break
		}
		if n += len(y); n > mostDescribed && len(all) > 0 {
			break
		}
		o := observed{value: x.Data, off: make([]float64, len(y)), want: y, half: half, shape: x.Shape, e: e}
		copy(o.off, x.Bound)
		o.wrong = make([]bool, len(y))
		left := e.Left
		if e.Few != nil && len(e.Few.Left) > 0 {
			left = e.Few.Left
		}
		for _, i := range left {
			if i < len(y) {
				o.wrong[i] = true
			}
		}
		if axes := s.m.List.Entries[e.Node.Entry].Axes; len(axes) == len(x.Shape) {
			o.axes = axes
			for k := range axes {
				if countsOfPass(axes[k]) {
					o.counted = append(o.counted, x.Shape[k])
				}
			}
		}
		if len(all) > 0 && !all[0].alike(&o) {
			continue
		}
		all = append(all, o)
	}
	return all, nil
}

// alike reports whether two values have the same axes, of the same sizes but for tokens and keys. An axis whose meaning is not known may count these.
func (o *observed) alike(other *observed) bool {
	if o.axes != other.axes || len(o.shape) != len(other.shape) || len(o.counted) != len(other.counted) {
		return false
	}
	for k, n := range o.shape {
		if n == other.shape[k] || o.axes != "" && countsOfPass(o.axes[k]) {
			continue
		}
		if o.axes != "" || !slices.ContainsFunc(single(len(o.counted)), func(c []int) bool { return o.counted[c[0]] == n && other.counted[c[0]] == other.shape[k] }) {
			return false
		}
	}
	return true
}

// countsOfPass reports whether the size of an axis depends on the pass: axes of tokens and of keys.
func countsOfPass(axis byte) bool { return axis == order.AxisToken || axis == order.AxisKey }

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
func zeroedResults(x *difference) *Description {
	d := &Description{Kind: "described.zeros", Of: theResult}
	for _, o := range x.results {
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
