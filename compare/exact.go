package compare

import (
	"encoding/binary"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Pattern compares which elements are masked.
type Pattern struct {
	Masked   int64   `json:"masked"`             // on both sides
	Shown    int64   `json:"shown"`              // on neither
	Gained   int64   `json:"gained,omitempty"`   // keys that the local side sees and the reference masks
	Lost     int64   `json:"lost,omitempty"`     // keys that the local side masks and the reference sees
	Examples [][]int `json:"examples,omitempty"` // the first few of those, in row-major order

	at []int64 // the examples as places
}

// maxExamples is how many places of a differing pattern are kept: enough to see whether they are a row, a column or
// a diagonal.
const maxExamples = 8

// add notes an element that one side alone masks.
func (p *Pattern) add(localMasks bool, at int64) {
	if localMasks {
		p.Lost++
	} else {
		p.Gained++
	}
	if len(p.at) < maxExamples {
		p.at = append(p.at, at)
	}
}

// masks returns whether a value of a mask of this dtype masks. A number does when it is below half the lowest finite
// number, or −Inf; another large one, such as −1e9, does not. A boolean or integer does when it is 0, as in torch,
// where True means "may be seen".
func masks(d hooks.DType) func(x float64) bool {
	if !d.Float() {
		return func(x float64) bool { return x == 0 }
	}
	limit := -halfLargest(d)
	return func(x float64) bool { return x < limit }
}

// withoutSums makes p the measurement of a pair that has no tolerance: relative errors are not defined.
func (p *sums) withoutSums() *sums {
	p.exact, p.axes, p.columns = true, nil, nil
	return p
}

// measurePattern compares two masks, and where they hold NaN, which masks nothing.
func (m *meter) measurePattern(l, r view) (*sums, error) {
	p := newSums(l.shape, l.rec.DType, r.rec.DType, order.Pattern).withoutSums()
	maskL, maskR := masks(l.rec.DType), masks(r.rec.DType)
	err := m.each(l, r, func(a, b []float64, _, _ []byte) {
		for i := range a {
			switch x, y := maskL(a[i]), maskR(b[i]); {
			case a[i] != a[i] || b[i] != b[i]:
				p.counts(a[i], b[i], i)
			case x != y:
				p.pattern.add(x, p.at+int64(i))
			case x:
				p.pattern.Masked++
			default:
				p.pattern.Shown++
			}
		}
		p.at += int64(len(a))
	})
	p.compared = p.at
	return p, err
}

// measureExact compares element by element where either side has integers or booleans. There is no tolerance.
func (m *meter) measureExact(l, r view) (*sums, error) {
	p := newSums(l.shape, l.rec.DType, r.rec.DType, order.All).withoutSums()
	words := is64(l.rec.DType) && is64(r.rec.DType)
	err := m.each(l, r, func(a, b []float64, rawA, rawB []byte) {
		for i := range a {
			p.side[0].add(a[i])
			p.side[1].add(b[i])
			d := math.Abs(a[i] - b[i])
			// Beyond 2^53 two integers may be different and decode to the same float64.
			if d == 0 && (!words || binary.LittleEndian.Uint64(rawA[8*i:]) == binary.LittleEndian.Uint64(rawB[8*i:])) {
				continue
			}
			p.unequal++
			if p.maxAt < 0 || d > p.maxAbs {
				p.maxAbs, p.maxAt, p.maxL, p.maxR = d, p.at+int64(i), a[i], b[i]
			}
		}
		p.at += int64(len(a))
	})
	p.compared = p.at
	return p, err
}

// is64 reports whether d is an integer type that a float64 does not hold exactly.
func is64(d hooks.DType) bool { return d == hooks.I64 || d == hooks.U64 }

// measure compares two tensors of floats of one shape by a rule.
func (m *meter) measure(l, r view, rule order.Rule, tokens bool) (*sums, error) {
	p := newSums(l.shape, l.rec.DType, r.rec.DType, rule)
	if tokens {
		p.top = &topTokens{}
	}
	err := m.each(l, r, func(a, b []float64, _, _ []byte) { p.chunk(a, b) })
	return p, err
}
