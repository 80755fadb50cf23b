package measure

import (
	"math"
	"sync/atomic"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
	"github.com/tracediff/tracediff/order"
)

// The two sides, as indexes.
const (
	local = iota
	reference
)

// kind is how the elements of two tensors are compared.
type kind int

const (
	closely  kind = iota // floats: sums of squares and the like
	exactly              // integers and booleans on one side at least: no tolerance
	patterns             // masks: which elements are masked
)

// measurement says what to measure. It does not change: blocks of it may be measured by several workers at a time.
type measurement struct {
	kind    kind
	views   [2]View
	alone   bool        // one tensor, the reference, as if it were both sides
	tokens  bool        // logits: see topTokens
	scale   float64     // power of two by which the sums' elements are multiplied: see sums.rescale
	coarser hooks.DType // of two floats
	masking
	extent

	fused *lanes.Limits  // nil: strips are decoded
	far   *atomic.Uint64 // bits of the largest difference in the merged blocks, which precede the blocks being measured
}

// masking says which elements take no part, each side by its own.
type masking struct {
	rule  order.Rule
	huge  [2]float64 // what is below its negative is a mask value
	masks [2]func(x float64) bool
}

// extent is the size of the view, and says whether sums are taken by row and by column.
type extent struct {
	elements, last  int // of the view, and of its last axis
	byRow, byColumn bool
}

// newMeasurement is that of two views of one shape.
func newMeasurement(l, r View, rule order.Rule, tokens bool) measurement {
	dl, dr := l.Rec.DType, r.Rec.DType
	m := measurement{
		views: [2]View{l, r}, scale: 1, extent: extent{elements: Elements(r.Shape), last: 1},
		masking: masking{rule: rule, huge: [2]float64{HalfLargest(dl), HalfLargest(dr)}},
	}
	for side, v := range m.views {
		stored, model := v.Rec.DType, v.trace.Manifest().DType
		m.masks[side] = Masks(stored, model)
		if rule != order.All {
			m.huge[side] = -MaskLimit(stored, model)
		}
	}
	if rank := len(r.Shape); rank > 0 {
		m.last = r.Shape[rank-1]
	}
	if dl.Float() && dr.Float() {
		m.coarser = floats.Coarser(dl, dr)
	}
	switch {
	case rule == order.Pattern:
		m.kind = patterns
	case exact(dl, dr):
		m.kind = exactly
	default:
		m.tokens = tokens
	}
	return m
}

// Sums is what was measured of a pair of tensors, and everything that their metrics are made of. In which order it was
// added up is laid down in package lanes.
type Sums struct {
	tally
	shape   []int
	Coarser hooks.DType
	Exact   bool    // compared without a tolerance: there are no sums
	Scale   float64 // all sums are of elements times this

	axes    []axis
	columns *axis // the one of them that is the last axis, if it is there
	TooLong bool
	Top     *topTokens // of the logits

	index []int // of the row that the next block begins in, or goes on with; the last axis apart
}

// newSums returns a measurement's sums without any block, and sets m.byRow and m.byColumn.
func newSums(m *measurement) *Sums {
	p := &Sums{tally: empty, shape: m.views[reference].Shape, Coarser: m.coarser, Exact: m.kind != closely, Scale: m.scale}
	if m.tokens {
		p.Top = &topTokens{row: noPick}
	}
	if p.Exact || len(p.shape) == 0 {
		return p
	}
	p.index = make([]int, len(p.shape)-1)
	p.axes, p.TooLong = newAxes(p.shape)
	for i := range p.axes {
		if p.axes[i].number == len(p.shape)-1 {
			p.columns = &p.axes[i]
			m.byColumn = true
		} else {
			m.byRow = true
		}
	}
	return p
}

// Squares of numbers far outside this range, which only float64 has, overflow, or vanish and hide a difference. The range leaves room for
// elements and differences much smaller than the largest.
const (
	mostSquared  = 0x1p300
	leastSquared = 0x1p-300
)

// rescale returns a power of two for the tensors such that their squares are finite; 1 without need. It brings the larger tensor's largest
// element to 1. An element below 2^−500 of the largest vanishes, which changes nothing.
func (p *Sums) rescale() float64 {
	most := 0.0
	for _, m := range p.Side {
		if m.N > 0 {
			most = max(most, -m.Min, m.Max)
		}
	}
	if p.Exact || most == 0 || leastSquared < most && most < mostSquared {
		return 1
	}
	_, exponent := math.Frexp(most)
	return math.Ldexp(1, min(-exponent, 1000)) // a subnormal number needs less than 2^1075 and gets enough
}

// merge takes in the block that comes next.
func (p *Sums) merge(b *block, last int) {
	p.tally.merge(&b.tally)
	if p.columns != nil {
		p.mergeColumns(b, last)
	}
	if len(b.rows.diff) == 0 && len(b.tops) == 0 {
		return
	}
	rows := (b.col + b.n + last - 1) / last
	for row := range rows {
		if len(b.rows.diff) > 0 {
			p.mergeRow(b.rows.diff[row], b.rows.ref[row])
		}
		if p.Top != nil {
			p.Top.row.merge(b.tops[row])
		}
		if (row+1)*last <= b.col+b.n {
			p.endRow()
		}
	}
}

// mergeRow adds the squares of a part of a row to the index that the row has on each other axis.
func (p *Sums) mergeRow(diff, ref float64) {
	for i := range p.axes {
		if a := &p.axes[i]; a.number < len(p.index) {
			a.diff[p.index[a.number]] += diff
			a.ref[p.index[a.number]] += ref
		}
	}
}

// mergeColumns adds the squares of a block's columns. Where rows are longer than a block it has them from its first
// element on, over the end of a row.
func (p *Sums) mergeColumns(b *block, last int) {
	if last <= lanes.Block {
		p.columns.add(0, b.cols.diff, b.cols.ref)
		return
	}
	n := min(b.n, last-b.col)
	p.columns.add(b.col, b.cols.diff[:n], b.cols.ref[:n])
	p.columns.add(0, b.cols.diff[n:b.n], b.cols.ref[n:b.n])
}

// endRow goes on to the next row.
func (p *Sums) endRow() {
	if p.Top != nil {
		p.Top.endRow()
	}
	for i := len(p.index) - 1; i >= 0; i-- {
		if p.index[i]++; p.index[i] < p.shape[i] {
			return
		}
		p.index[i] = 0
	}
}

// HalfLargest is half the largest finite number of a float type. Two equal numbers below its negative are mask values.
func HalfLargest(d hooks.DType) float64 {
	switch d {
	case hooks.F64:
		return math.MaxFloat64 / 2
	case hooks.F32:
		return math.MaxFloat32 / 2
	case hooks.F16:
		return 65504 / 2
	case hooks.BF16:
		return 0x1.fep127 / 2
	case hooks.F8E4M3:
		return 448 / 2
	case hooks.F8E5M2:
		return 57344 / 2
	}
	return math.Inf(1) // integers are never masked by size
}
