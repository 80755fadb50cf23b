package measure

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/tracediff/tracediff/internal/lanes"

	"github.com/tracediff/tracediff/hooks"
)

// Pattern compares which elements are masked.
type Pattern struct {
	Masked   int64   `json:"masked"`             // on both sides
	Shown    int64   `json:"shown"`              // on neither
	Gained   int64   `json:"gained,omitempty"`   // keys that the local side sees and the reference masks
	Lost     int64   `json:"lost,omitempty"`     // keys that the local side masks and the reference sees
	Examples [][]int `json:"examples,omitempty"` // the first few of those, in row-major order

	At []int64 `json:"-"` // the examples as places
}

// maxExamples is how many places of a differing pattern are kept: enough to see whether they are a row, a column or
// a diagonal.
const maxExamples = 8

// add counts an element that only one side masks.
func (p *Pattern) add(localMasks bool, at int64) {
	if localMasks {
		p.Lost++
	} else {
		p.Gained++
	}
	if len(p.At) < maxExamples {
		p.At = append(p.At, at)
	}
}

// hidden is so far below any score that float32's softmax gives exactly 0: exp(−104) is 0, and no model's scores come near. Engines that add
// −1e8 or −1e9 in place of the lowest number mask just as well; 2^26 is below both, rounded to any float type. −1e4, which some add in
// float16, masks nothing.
const hidden = 0x1p26

// MaskLimit is the number below which a score, or an element of a mask, hides its key: −hidden, or half of the lowest finite
// number of the dtype that it is stored in or that the model computes in, whichever is nearer to 0. So a mask is the same
// mask in any dtype that it is stored in.
func MaskLimit(stored, model hooks.DType) float64 {
	limit := min(hidden, HalfLargest(stored))
	if Computes(model) {
		limit = min(limit, HalfLargest(model))
	}
	return -limit
}

// Computes reports whether models compute in a dtype. What else a manifest declares changes no limit.
func Computes(d hooks.DType) bool {
	return d == hooks.F64 || d == hooks.F32 || d == hooks.BF16 || d == hooks.F16
}

// Masks returns whether a value of a mask of this dtype masks: a number below [MaskLimit], −Inf too. A boolean or integer does
// when it is 0, as in torch, where True means "may be seen".
func Masks(stored, model hooks.DType) func(x float64) bool {
	if !stored.Float() {
		return func(x float64) bool { return x == 0 }
	}
	limit := MaskLimit(stored, model)
	return func(x float64) bool { return x < limit }
}

// merge takes in the elements that come next.
func (p *Pattern) merge(o *Pattern) {
	p.Masked += o.Masked
	p.Shown += o.Shown
	p.Gained += o.Gained
	p.Lost += o.Lost
	p.At = append(p.At, o.At[:min(len(o.At), maxExamples-len(p.At))]...)
}

// patterns compares a strip of two masks; where they hold NaN, that masks nothing.
func (b *block) patterns(m *measurement, s *strip) {
	b.Compared += int64(s.n)
	for i, x := range s.l {
		y := s.r[i]
		at := int64(b.first + s.at + i)
		switch maskL, maskR := m.masks[local](x), m.masks[reference](y); {
		case x != x || y != y:
			b.special(x, y, at)
		case maskL != maskR:
			b.Pattern.add(maskL, at)
		case maskL:
			b.Pattern.Masked++
		default:
			b.Pattern.Shown++
		}
	}
}

// exactly compares a strip element by element where either side has integers or booleans. There is no tolerance.
func (b *block) exactly(m *measurement, s *strip) {
	b.Compared += int64(s.n)
	for i, x := range s.l {
		if s.same {
			break
		}
		if d := m.distance(s, i); d != 0 {
			b.unequal++
			if d != d {
				d = 0 // NaN differs, but by no amount: any other difference is larger
			}
			b.differ(difference{d, int64(b.first + s.at + i), x, s.r[i]})
		}
	}
	for side, x := range [][]float64{s.l, s.r} {
		if s.same && side == reference {
			break // the same memory, and already measured
		}
		b.holes = b.holes[:0]
		v := lanes.Nothing
		for i, y := range x {
			if Finite(y) {
				v.Add(y)
				continue
			}
			b.Side[side].Special(y)
			b.holes = append(b.holes, i)
			x[i] = 0
		}
		v.Total = lanes.Total(x)
		o := lanes.MomentsOf(x, b.holes, v)
		b.Side[side].Merge(&o)
		if s.same {
			b.Side[reference].Merge(&o)
		}
	}
}

// exactFloat is the bound below which every integer is a float64.
const exactFloat = 1 << 53

// distance is |l − r| of element i, rounded once: 0 only for equal numbers. A float64 does not hold every 64-bit integer, so two different
// integers may decode to the same number. NaN is at distance NaN from everything.
func (m *measurement) distance(s *strip, i int) float64 {
	x, y := s.l[i], s.r[i]
	if math.Abs(x) < exactFloat && math.Abs(y) < exactFloat || !Finite(x) || !Finite(y) {
		return math.Abs(x - y)
	}
	a, b := precise(m.views[local].Rec.DType, s.raw[local], i, x), precise(m.views[reference].Rec.DType, s.raw[reference], i, y)
	d, _ := a.Sub(a, b).Float64()
	return math.Abs(d)
}

// precise returns the number that element i is, with room for the difference of any float64 from any integer. x is what
// it was decoded to.
func precise(d hooks.DType, raw []byte, i int, x float64) *big.Float {
	f := new(big.Float).SetPrec(64 + 1074)
	switch d {
	case hooks.I64:
		return f.SetInt64(int64(binary.LittleEndian.Uint64(raw[8*i:])))
	case hooks.U64:
		return f.SetUint64(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return f.SetFloat64(x)
}
