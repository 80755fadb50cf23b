package diagnose

import (
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// A Description says how tensors that no mistake explains differ from the result of their operation. It is computed from the numbers: it is neither a name
// nor a proof of the port's mistake. The row of its kind in the catalogue makes the sentence.
type Description struct {
	Kind Kind `json:"kind"`
	// Of is the result, or a value within the operation, that differs.
	Of Term `json:"of"`
	// By lists the axes along which the numbers differ, by what the axes count; empty for a single number. Same lists the other axes.
	By   string `json:"by,omitempty"`
	Same string `json:"same_for,omitempty"`
	// Values are the first wrong numbers, in the order of their indexes.
	Values []float64 `json:"values,omitempty"`
	// Called are the fields of the configuration, or functions of fields, that equal the only number.
	Called string `json:"called,omitempty"`
	// Like has the same numbers: a weight, a number of the formula or its reciprocal, or a captured tensor.
	Like Term `json:"like,omitzero"`
	// Explained counts the elements, out of Elements, that fit the description. Numbers counts the fitted numbers.
	Explained int `json:"explained"`
	Elements  int `json:"elements"`
	Numbers   int `json:"numbers,omitempty"`
	// Wrong counts the wrong fitted numbers, such as a factor other than 1. Values has the first wrong numbers.
	Wrong int `json:"wrong_numbers,omitempty"`
	// Cases are the first single cases, in words: rows, queries, pairs of channels. With more than six cases the sentence ends with dots.
	Cases []string `json:"cases,omitempty"`
	// Where are the only indexes of the axes at which something differs, in words; empty for all indexes.
	Where string `json:"where,omitempty"`
	// Only is a condition on a value that holds wherever something differs, in words; empty for no condition.
	Only string `json:"only,omitempty"`
	// Zeros counts elements that are 0 and should not be. The numbers do not count them. ZerosAt says where the zeros are.
	Zeros   int    `json:"zeros,omitempty"`
	ZerosAt string `json:"zeros_at,omitempty"`
	// Right are the layers and passes in which the same operation is right.
	Right string `json:"right_in,omitempty"`
}

// like reports whether two descriptions are of the same kind of difference, even with different numbers. Either may be nil.
func (d *Description) like(other *Description) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.Kind == other.Kind && d.Of.same(other.Of) && d.By == other.By && d.Same == other.Same && d.Like.same(other.Like) && slices.Equal(d.Cases, other.Cases)
}

// vague are the kinds that say where something differs, but not how.
var vague = []Kind{"described.zeros", "described.data", "described.somewhere", "described.no-operand", "described.operand"}

// or returns the description that says more: d, or other where d is nil or only d is vague.
func (d *Description) or(other *Description) *Description {
	if d == nil || other != nil && slices.Contains(vague, d.Kind) && !slices.Contains(vague, other.Kind) {
		return other
	}
	return d
}

const (
	mostDescribed = 1 << 20 // elements that are looked at
	mostValues    = 6       // numbers that are listed
	leastShare    = 0.97    // of the elements that a description must explain: saturated and cancelled values fit nothing
	leastAGroup   = 3       // elements for each fitted number
)

// observed is a value of one entry: the right value, and the value that would give the trace's tensor.
type observed struct {
	value, off []float64 // the right value, and its largest error
	want, half []float64 // the value that would give the trace's tensor, and its largest error
	shape      []int
	wrong      []bool // of a result: the elements that the arithmetic does not give; nil for a value within the operation
	each       int    // how many elements of the result one element of the value was computed from; 0 for one
	axes       string // what the axes count, by their letters: a letter for each axis, or empty
	counted    []int  // the numbers of tokens and keys of the entry, which differ from pass to pass
	e          *Entry
}

// difference is the subject of a description: the results of the entries of a search, and values that are computed once from the results.
type difference struct {
	*search
	results []observed
	inners  func() []inner        // see requiredValues; the last is the operand of a product
	operand func() *solvedOperand // see operandOfProducts and fewInputs
	bases   func() []base         // see basesOf; the first are the right results
	offered func() []string
	part    func() Spots                        // see wrongPart
	block   func() (in *difference, part Spots) // see inWrongPart
}

// analysis is a way to describe a difference. It returns nil where the way does not hold.
type analysis struct {
	of       func(x *difference) *Description
	proposes bool // the description proposes mistakes
}

// analyses are the ways to describe a difference, the most specific way first.
func analyses() []analysis {
	return []analysis{
		{otherKeys, true},
		{wholeInputs, true},
		{otherLayersWeights, true},
		{captiveResult, true},
		{rowsFromElsewhere, true},
		{resultOnGrid, true},
		{of: channelsFromElsewhere},
		{oneIndexed, true},
		{otherSums, true},
		{rankedRows, true},
		{rowStatistics, true},
		{statisticsOfRows, true},
		{byPosition, true},
		{inwards, true},
		{inBlock(otherSums), true},
		{inBlock(inwards), true},
		{innerOnGrid, true},
		{slopes, true},
		{of: turnedPairs},
		{movedPositions, true},
		{angledOtherwise, true},
		{mixtures, true},
		{otherIndexes, true},
		{of: restOfZeros},
		{otherHeads, true},
		{of: turnedFurther},
		{shiftedWeights, true},
		{of: lowRank},
		{ofTwoValues, true},
		{of: inFewBits},
		{describeOperand, true},
		{numbersOfBlocks, true},
		{curved, true},
		{of: ofOneValue},
		{of: zeroedResults},
		{of: ofItsData},
		{of: somewhere},
	}
}

// describe describes the entries of a search without a name. It is nil where no way holds, and where a mistake that a description proposes is found.
func describe(s *search) (*Description, error) {
	results, err := results(s)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	x := differenceOf(s, results)
	s.differs = x
	var best *Description // the first vague description, until a description says how the entries differ
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
		if d != nil && s.draft(d).quiet {
			continue
		}
		if !said {
			best = best.or(d)
		}
	}
	if best == nil {
		return nil, nil
	}
	if len(best.Cases) == 0 { // cases say where
		best.Where = best.place(s, results)
	}
	if best.Numbers == 0 {
		best.Only = x.condition()
	}
	return best, s.err
}

// differenceOf is the difference of some results.
func differenceOf(s *search, results []observed) *difference {
	x := &difference{search: s, results: results}
	x.operand = sync.OnceValue(func() *solvedOperand {
		o := operandOfProducts(s, results)
		if few := fewInputs(s, results); few != nil && few.gives() && (o == nil || o.gives()) {
			return few
		}
		return o
	})
	x.inners = sync.OnceValue(func() []inner {
		all := requiredValues(s, results)
		if o := x.operand(); o != nil && o.gives() {
			all = append(all, o.inner)
		}
		return all
	})
	x.bases = sync.OnceValue(func() []base { return basesOf(s, results) })
	x.part = sync.OnceValue(func() Spots { return wrongPart(s) })
	x.block = sync.OnceValues(func() (*difference, Spots) { return inWrongPart(x) })
	x.offered = sync.OnceValue(func() []string { return offeredTensors(s) })
	return x
}

// captiveResult is [captive] of the result.
func captiveResult(x *difference) *Description {
	return x.captive(x.results, theResult, edit.Place{Arg: result})
}

// inwards describes the result, or the value within the operation that needs the fewest numbers. Of several values with as few numbers, it takes the value
// with the fewest elements.
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

// results are the results of the entries whose axes have the sizes of the first entry, apart from tokens and keys, up to [mostDescribed] elements. Entries
// of another shape, such as entries of layers with fewer heads, are not described.
func results(s *search) (all []observed, err error) {
	n := 0
	for _, e := range s.entries {
		e = e.Small()
		x, y, half, err := e.own()
		s.whole(e.Program)
		if err != nil {
			return nil, outside(err)
		}
		if len(x.Data) != len(y) || len(y) != program.Size(x.Shape) {
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

// alike reports whether two values have the same axes, with the same sizes apart from tokens and keys. An axis without a known meaning may count tokens or
// keys.
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

// own is the result of the entry's own program, with the trace's tensor y and half the distance between two numbers of the trace's dtype. A large entry
// has only the few tokens that a search looks at first.
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

// zeroedResults describes entries with zeros in at least a quarter of the wrong elements.
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
