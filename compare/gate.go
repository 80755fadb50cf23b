package compare

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// limits are the relative L2 that a whole tensor may have.
type limits struct {
	before  float64 // entries before the layers: embeddings, rotary tables and the like, a few roundings from the ids
	through float64 // entries of the layers and after them, where errors have accumulated
}

// table has the limits by the coarsest dtype in which either side computes. It is a documented guess for when nothing
// better is known: a healthy port stays below it, and a bug that does too is one that only isolated operations show.
//
// Measured between implementations that round in the same places, between ones that do not, and between dtypes, on
// models of a few layers with random weights, of which the worst tensors lie behind a sharp softmax or a cancelled sum.
// Before the layers all were within 2.5 unit roundoffs.
var table = map[hooks.DType]limits{
	// The reference does its norms, softmax and tables in float32 whatever the dtype, so float64 ends up no closer.
	hooks.F64: {5e-5, 1e-3},
	// Median 4e-7 to 7e-7, worst 1e-6 to 3e-5, once 7e-4. Before the layers 1.5e-7; the limit there leaves room for
	// rotary tables made in float64, whose angles differ by 6e-8 of the position, and shows an embedding scale that was
	// rounded to bfloat16, 1e-4 off.
	hooks.F32: {5e-5, 1e-3},
	// Against float32: median 1e-3 to 7e-3, worst 5e-3 to 3e-2.
	hooks.F16: {3e-3, 2e-2},
	// Equal in all but a few elements where both round in the same places, and yet a single tie that rounds the other way
	// can become 5.5e-2 two operations on. Against float32: median 1e-2 to 6e-2, worst 4e-2 to 2e-1.
	hooks.BF16: {2e-2, 1e-1},
	// Not measured: a few times the unit roundoff, which is 2^−4 and 2^−3.
	hooks.F8E4M3: {0.2, 0.3},
	hooks.F8E5M2: {0.4, 0.5},
}

// sliceFactor is how much further than the whole tensor a single token, channel or other slice may be off, before its
// size is taken into account: noise is not spread evenly over slices, and three times tells it from an error there.
const sliceFactor = 3

// spread is the room that the worst of n slices needs beyond an average one when each has m elements with independent
// errors: the largest of n estimates of a standard deviation is about 1 + √(2 ln n / m) times the true one. A token of
// 2048 channels needs next to none; one of 262144 logits, being a slice of one element, needs six times.
func spread(n int, m float64) float64 { return 1 + math.Sqrt(2*math.Log(float64(n))/m) }

// Gate is the decision on one entry: errors, their limits and where the limits come from.
type Gate struct {
	From   string  `json:"from"` // "exact", "pattern", "table, bfloat16" or "table, bfloat16 before the layers"
	Checks []Check `json:"checks,omitempty"`
	// Tolerance is the smallest limit on the whole tensor with which all checks would have passed, the limits on slices
	// being multiples of it. NaN where there is no tolerance.
	Tolerance Number `json:"tolerance"`
}

// Check is one error and its limit.
type Check struct {
	What  string `json:"what"` // "tensor", or the axis whose worst slice it is
	Error Number `json:"error"`
	Limit Number `json:"limit"`
}

// Passed reports whether the error is within the limit; one that is not a number is not.
func (c Check) Passed() bool { return c.Error <= c.Limit }

// judge decides on the metrics of a pair of floats that come out of arithmetic in a dtype.
func judge(m *Metrics, arithmetic hooks.DType, beforeLayers bool) *Gate {
	limit, from := table[arithmetic].through, fmt.Sprintf("table, %s", arithmetic)
	if beforeLayers {
		limit, from = table[arithmetic].before, from+" before the layers"
	}
	g := &Gate{From: from, Tolerance: m.RelL2}
	g.Checks = append(g.Checks, Check{"tensor", m.RelL2, Number(limit)})
	for _, a := range m.Axes {
		factor := sliceFactor * spread(a.Size, a.elements)
		g.Checks = append(g.Checks, Check{a.Axis, a.RelL2, Number(limit * factor)})
		g.Tolerance = max(g.Tolerance, a.RelL2/Number(factor))
	}
	return g
}

// Passed reports whether every check did.
func (g *Gate) Passed() bool {
	for _, c := range g.Checks {
		if !c.Passed() {
			return false
		}
	}
	return true
}
