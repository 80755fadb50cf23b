package compare

import (
	"math"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// Overflow says that elements of the local tensor are infinite because its dtype cannot hold the numbers that the reference has there. It says
// nothing about the operation: in a wider dtype these elements would be finite.
type Overflow struct {
	DType    string         `json:"dtype"`
	Elements int64          `json:"elements"` // infinite on the local side
	Largest  measure.Number `json:"largest"`  // magnitude that the reference has in them
	End      measure.Number `json:"end"`      // the largest number of the dtype
}

// Overflowed reports whether a row is a mismatch since its local dtype ends too early, and is not wrong on its own inputs.
func (r *Row) Overflowed() bool {
	return r.Overflow != nil && r.Decided != ByIsolation && r.Decided != ByBoth
}

// overflowOf looks at a pair with elements that are finite on one side only. It is nil unless each of them is an overflow of dtype d and all other
// elements are within their limit.
func (p *pair) overflowOf(d hooks.DType) (*Overflow, error) {
	m := p.row.Metrics
	if m == nil || m.NonFinite == 0 || !d.Float() || !p.l.Rec.DType.Float() || p.entry.Compare != order.All || !p.row.Gate.Passed() {
		return nil, nil
	}
	return overflow(p.l, p.r, d, gate.TableLimit(d))
}

// overflow looks at the elements of two views of one shape. An infinity is an overflow of d where the reference has the same sign and is no
// less than the largest number of d, less a relative error that it may have.
func overflow(l, r measure.View, d hooks.DType, limit float64) (*Overflow, error) {
	end := floats.Largest(d)
	o := &Overflow{DType: d.String(), End: measure.Number(end)}
	n := measure.Elements(l.Shape)
	x, y := make([]float64, min(n, overflowChunk)), make([]float64, min(n, overflowChunk))
	for at := 0; at < n; at += len(x) {
		x, y = x[:min(len(x), n-at)], y[:min(len(y), n-at)]
		if err := l.Values(x, at); err != nil {
			return nil, err
		}
		if err := r.Values(y, at); err != nil {
			return nil, err
		}
		for i, v := range x {
			switch w := y[i]; {
			case measure.Finite(v) == measure.Finite(w):
			case !math.IsInf(v, 0) || !measure.Finite(w) || v > 0 != (w > 0) || math.Abs(w)*(1+limit) < end:
				return nil, nil
			default:
				o.Elements++
				o.Largest = max(o.Largest, measure.Number(math.Abs(w)))
			}
		}
	}
	return o, nil
}

// overflowChunk is how many elements are looked at at a time.
const overflowChunk = 1 << 16
