package gate

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/tracekey"
	"github.com/tracediff/tracediff/order"
)

// noiseFactor is the limit in noise floors, by the dtype of the floor; docs/results/limits.md has the measured rate of healthy pairs beyond it.
// float32 needs a larger factor: the walk sums in float64, so its floor lacks the rounding of an engine's float32 sums. In 16 bits that
// rounding is far smaller than the tensors' own.
var noiseFactor = map[hooks.DType]float64{hooks.F32: 8, hooks.BF16: 4, hooks.F16: 4}

// noisePrior is the weight, in elements, of the floors of an entry's kind against the entry's own floor. One draw of rounding errors over n
// elements estimates their size to about 1/√(2n): a coefficient for each of four streams that happens to be right says nothing, and the same
// coefficients of all layers and passes give the usual size. This is the moderated variance of statistics with few samples (Smyth, 2004), with
// fixed prior degrees of freedom and, since small entries have heavy tails, the kind's largest floor as the prior.
const noisePrior = 64

// A limit of 1 lets a tensor of zeros pass. If rounding causes such errors for a prompt, as tiny random weights may, the accumulated error
// says nothing, and the gate's limit stays below 1: only the certificate can call such an error drift.
const (
	widest      = 0.5 // of a tensor
	widestSlice = 0.9 // of one token, channel or other slice
)

// Floors answers for the pairs of one comparison.
type Floors struct {
	floor *NoiseFloor
	kinds map[string]Noise // by kind of entry, the largest floor
}

// NewFloors prepares the floors of a prompt for one comparison; nil without any.
func NewFloors(f *NoiseFloor) *Floors {
	if f == nil {
		return nil
	}
	n := &Floors{f, map[string]Noise{}}
	for key, e := range f.Entries {
		kind := kindOf(key)
		k, seen := n.kinds[kind]
		if !seen {
			k.Worst = map[string]measure.Number{}
		}
		k.RelL2 = max(k.RelL2, e.RelL2)
		for axis, err := range e.Worst {
			if measure.Finite(float64(err)) {
				k.Worst[axis] = max(k.Worst[axis], err)
			}
		}
		n.kinds[kind] = k
	}
	return n
}

// kindOf is the common name of an entry in all layers and passes.
func kindOf(key string) string {
	_, name, _ := tracekey.CutPass(key)
	return order.NameOf(name).Kind()
}

// Gate decides by the floor; nil for a pair without a floor.
//
// The floor of a tensor, and of its worst slices, is the largest of
//   - its own measured floor;
//   - the floor of its kind, weighted against its own floor: with m elements,
//     √((m·own² + 64·kind²) / (m + 64));
//   - half a unit roundoff of the dtype, half of the largest effect of one rounding: an entry that the walk hits exactly, or does not
//     round, has a floor of zero, and any difference would be infinitely many floors. For subnormal numbers it is half of the largest
//     effect of one rounding on them.
//
// A slice's floor is at least the tensor's. No limit is wider than widest. With only some tokens compared, these may be the worst tokens.
func (n *Floors) Gate(m *measure.Metrics, key, name string, arithmetic hooks.DType, part bool) *Gate {
	if n == nil || n.floor.DType != arithmetic.String() {
		return nil
	}
	times, ok := noiseFactor[arithmetic]
	if !ok {
		return nil
	}
	own, ok := n.floor.Entries[key]
	if !ok {
		return nil
	}
	kind := n.kinds[kindOf(name)]
	least := max(floats.Unit(arithmetic), lastRounding(m, arithmetic)) / 2
	of := func(own, kind measure.Number) float64 {
		size := float64(m.Compared)
		usual := math.Sqrt((size*float64(own*own) + noisePrior*float64(kind*kind)) / (size + noisePrior))
		return max(float64(own), usual, least)
	}
	tensor := of(own.RelL2, kind.RelL2)
	if part {
		tensor = max(tensor, float64(own.Worst["token"]))
	}
	slice := func(a measure.AxisError) float64 {
		worst, ok := own.Worst[a.Axis]
		if !ok || !measure.Finite(float64(worst)) { // a slice that the walk has as zero: the multiple of a tensor's, as everywhere
			return tensor * factor(a)
		}
		if part { // slices have fewer elements than the measured floors, and scatter more
			return max(tensor*factor(a), of(worst, kind.Worst[a.Axis]))
		}
		return max(tensor, of(worst, kind.Worst[a.Axis]))
	}
	axes := limited(m)
	g := newGate(m, axes, fmt.Sprintf("%g x noise floor, %s", times, n.floor.DType), min(times*tensor, widest), func(a measure.AxisError) float64 {
		return min(times*slice(a), widestSlice)
	})
	g.Noise = measure.Number(measure.Ratio(float64(m.RelL2), tensor))
	for _, a := range axes {
		g.Noise = max(g.Noise, measure.Number(measure.Ratio(float64(a.RelL2), slice(a))))
	}
	return g
}
