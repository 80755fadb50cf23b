package compare

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// chunkElements is how many elements of a side are read at a time, 64 KiB to 512 KiB of file. No result depends on it.
var chunkElements = 1 << 16

// meter measures pairs of tensors. Its buffers are those of one chunk of both sides and serve all of them.
type meter struct {
	raw    [2][]byte
	values [2][]float64
}

func (m *meter) grow() {
	for side := range m.raw {
		if len(m.values[side]) != chunkElements {
			m.values[side] = make([]float64, chunkElements)
			m.raw[side] = make([]byte, 8*chunkElements)
		}
	}
}

// each reads two views of as many elements in step and hands chunk after chunk to do.
func (m *meter) each(l, r view, do func(l, r []float64, rawL, rawR []byte)) error {
	m.grow()
	cl, cr := cursor{view: l}, cursor{view: r}
	for {
		n, err := cl.next(m.values[0], m.raw[0])
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if _, err := cr.next(m.values[1][:n], m.raw[1]); err != nil {
			return err
		}
		do(m.values[0][:n], m.values[1][:n], m.raw[0], m.raw[1])
	}
}

// squares measures one tensor, as if it were both sides: its sum of squares, and that of every slice.
func (m *meter) squares(v view) (*sums, error) {
	m.grow()
	p := newSums(v.shape, v.rec.DType, v.rec.DType, order.All)
	c := cursor{view: v}
	for {
		n, err := c.next(m.values[0], m.raw[0])
		if err != nil || n == 0 {
			return p, err
		}
		p.chunk(m.values[0][:n], m.values[0][:n])
	}
}

// sums is one pass over a pair of tensors: everything that the metrics are made of. All sums are of float64, in
// row-major order, and products are converted (float64(a*b)) so that no compiler fuses them into an addition: results
// are the same on every machine and whatever the size of the chunks.
type sums struct {
	rule    order.Rule
	coarser hooks.DType
	huge    [2]float64 // per side: half the largest finite number of its dtype

	shape []int
	last  int   // size of the last axis
	index []int // of the row of elements along the last axis that is being read
	col   int   // and how far
	at    int64 // elements before it, over all rows

	compared, masked, unequal int64
	maxULP                    uint64
	maxAbs                    float64
	maxAt                     int64 // −1: no two elements differ
	maxL, maxR                float64
	ll, rr, lr, dd            float64
	rowD, rowR                float64 // dd and rr of this row alone
	side                      [2]moments
	nanBoth, nonFinite        int64
	nonFiniteAt               int64
	pattern                   Pattern

	axes    []axis
	columns *axis // the one of them that is the last axis, if it is there
	tooLong bool
	top     *topTokens // for logits
	exact   bool       // compared without a tolerance: there are no sums
}

func newSums(shape []int, l, r hooks.DType, rule order.Rule) *sums {
	if len(shape) == 0 {
		shape = []int{1}
	}
	p := &sums{
		rule: rule, shape: shape, last: shape[len(shape)-1], index: make([]int, len(shape)-1), maxAt: -1, nonFiniteAt: -1,
		huge: [2]float64{halfLargest(l), halfLargest(r)},
	}
	if l.Float() && r.Float() {
		p.coarser = floats.Coarser(l, r)
	}
	p.axes, p.tooLong = newAxes(shape)
	for i := range p.axes {
		if p.axes[i].number == len(shape)-1 {
			p.columns = &p.axes[i]
		}
	}
	return p
}

// halfLargest is half the largest finite number of a float type. A score below its negative is masked.
func halfLargest(d hooks.DType) float64 {
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

// chunk takes the next elements of both sides.
func (p *sums) chunk(l, r []float64) {
	for len(l) > 0 {
		k := min(len(l), p.last-p.col)
		p.run(l[:k], r[:k])
		if p.top != nil {
			p.top.run(l[:k], r[:k], p.col)
		}
		l, r = l[k:], r[k:]
		p.at += int64(k)
		if p.col += k; p.col == p.last {
			p.endRow()
		}
	}
}

// endRow adds the row's sums to the index that it has on each other axis, and goes on to the next row.
func (p *sums) endRow() {
	p.dd += p.rowD
	p.rr += p.rowR
	for i := range p.axes {
		if a := &p.axes[i]; a.number < len(p.index) {
			a.diff[p.index[a.number]] += p.rowD
			a.ref[p.index[a.number]] += p.rowR
		}
	}
	p.rowD, p.rowR, p.col = 0, 0, 0
	if p.top != nil {
		p.top.endRow()
	}
	for i := len(p.index) - 1; i >= 0; i-- {
		if p.index[i]++; p.index[i] < p.shape[i] {
			return
		}
		p.index[i] = 0
	}
}

// run takes elements along the last axis, from p.col on.
func (p *sums) run(l, r []float64) {
	var colD, colR []float64
	if p.columns != nil {
		colD, colR = p.columns.diff[p.col:p.col+len(l)], p.columns.ref[p.col:p.col+len(l)]
	}
	rowD, rowR, ll, lr := p.rowD, p.rowR, p.ll, p.lr
	r = r[:len(l)]
	for i, a := range l {
		b := r[i]
		if !(math.Abs(a) < p.huge[0] && math.Abs(b) < p.huge[1]) && !p.counts(a, b, i) {
			continue
		}
		p.compared++
		p.side[0].add(a)
		p.side[1].add(b)
		d := a - b
		if d != 0 {
			p.differs(a, b, d, i)
		}
		dd, rr := float64(d*d), float64(b*b)
		ll += float64(a * a)
		lr += float64(a * b)
		rowD += dd
		rowR += rr
		if colD != nil {
			colD[i] += dd
			colR[i] += rr
		}
	}
	p.rowD, p.rowR, p.ll, p.lr = rowD, rowR, ll, lr
}

// differs notes an element whose two values are not equal.
func (p *sums) differs(a, b, d float64, i int) {
	if steps := floats.Distance(p.coarser, a, b); steps > 0 {
		p.unequal++
		p.maxULP = max(p.maxULP, steps)
	}
	if math.Abs(d) > p.maxAbs {
		p.maxAbs, p.maxAt, p.maxL, p.maxR = math.Abs(d), p.at+int64(i), a, b
	}
}

// counts looks at a pair of which one is NaN, infinite or huge, and reports whether it takes part in the sums.
func (p *sums) counts(a, b float64, i int) bool {
	at := p.at + int64(i)
	maskA, maskB := a < -p.huge[0], b < -p.huge[1]
	if p.rule == order.Allowed && (maskA || maskB) {
		if maskA != maskB {
			p.pattern.add(maskA, at)
		} else {
			p.masked++
		}
		return false
	}
	if finite(a) && finite(b) {
		// Both hold the same mask value: it is equal, and in the norms it would hide every other element.
		if a == b && maskA && maskB {
			p.masked++
			return false
		}
		return true
	}
	p.side[0].special(a)
	p.side[1].special(b)
	switch {
	case a != a && b != b, a == b && a > 0: // −Inf on both sides is how some engines mask
		p.nanBoth++
	case a != b:
		p.nonFinite++
		if p.nonFiniteAt < 0 {
			p.nonFiniteAt = at
		}
	}
	return false
}

func finite(x float64) bool { return x-x == 0 }
