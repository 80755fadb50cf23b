package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// limits are the relative L2 that a whole tensor may have.
type limits struct {
	before  float64 // entries before the layers: embeddings, rotary tables and the like, a few roundings from the ids
	through float64 // entries of the layers and after them, where errors have accumulated
}

// table has the limits by the coarsest dtype in which either side computes: a documented guess without better knowledge. A healthy port stays
// below it; a bug below it shows only in isolated operations.
//
// Measured between implementations that round in the same places, in different places, and in different dtypes, on models of a few layers with
// random weights. The worst tensors come after a sharp softmax or a cancelled sum. Before the layers all were within 2.5 unit
// roundoffs.
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

// TableLimit is the table's limit on a whole tensor of the layers, or after them, that comes out of arithmetic in a dtype.
func TableLimit(arithmetic hooks.DType) float64 { return table[arithmetic].through }

// sliceFactor is how much further than the whole tensor a single token, channel or other slice may be off, before its
// size is taken into account: noise is not spread evenly over slices, and three times tells it from an error there.
const sliceFactor = 3

// spread is the room that the worst of n slices needs beyond an average one when each has m elements with independent
// errors: the largest of n estimates of a standard deviation is about 1 + √(2 ln n / m) times the true one. A token of
// 2048 channels needs next to none; one of 262144 logits, being a slice of one element, needs six times.
func spread(n int, m float64) float64 { return 1 + math.Sqrt(2*math.Log(float64(n))/m) }

// Gate is the decision on one entry: errors, their limits and where the limits come from. From tells the sources apart:
//
//   - `tolerances, "PATTERN"` or `flags`: a person's, see [Tolerance];
//   - `K x noise floor, DTYPE`: a few times the effect of rounding on this prompt, see [NoiseFloor];
//   - `table, DTYPE` or `table, DTYPE before the layers`: what healthy ports have shown on other models;
//   - `exact` and `pattern`: integers, booleans and masks, which have no tolerance.
//
// The limit of a slice is three times that of the tensor, and more where the slices are small, since the worst of many
// is far from an average one: 3 · (1 + √(2 ln n / m)) for n slices of m elements. A noise floor has one for each axis.
//
// In a pass of one token the worst channel has only a person's own limit: a channel is one element, or one for each head, and no factor bounds the
// error of the worst of thousands of elements over the size of the median element.
type Gate struct {
	From   string  `json:"from"`
	Checks []Check `json:"checks,omitempty"`
	// Tolerance is the smallest limit on the whole tensor with which all checks would have passed, the limits on slices
	// growing and shrinking with it. NaN where there is no tolerance, infinite where none would do.
	Tolerance measure.Number `json:"tolerance"`
	// Noise is the smallest multiple of the noise floor with which all checks would have passed; 0 where the floor did not
	// decide.
	Noise measure.Number `json:"noise,omitempty"`
}

// Check is one error and its limit.
type Check struct {
	What  string         `json:"what"` // "tensor", the axis whose worst slice it is, or "largest element", an absolute error
	Error measure.Number `json:"error"`
	Limit measure.Number `json:"limit"`
}

// Source says in words where limits come from, of what [Gate].From has.
func Source(from string) string {
	if dtype, ok := strings.CutPrefix(from, tableFrom); ok {
		return BuiltIn + dtype
	}
	if pattern, ok := strings.CutPrefix(from, "tolerances, "); ok {
		return "--tolerances, pattern " + pattern
	}
	if from == "flags" {
		return "--rtol and --atol"
	}
	return from
}

// The parts of a source that is the table: it begins with tableFrom, or with BuiltIn in words, and ends with BeforeLayers for entries before the layers.
const (
	tableFrom    = "table, "
	BuiltIn      = "built-in limits for "
	BeforeLayers = " before the layers"
)

// ByEquality is where the decision on integers and booleans comes from.
const ByEquality = "exact"

// LargestElement is the [Check].What of the absolute error, checked for a reference of zero, which has no relative error.
const LargestElement = "largest element"

// Passed reports whether the error is within the limit; one that is not a number is not.
func (c Check) Passed() bool { return c.Error <= c.Limit }

// Name is the error that was checked, in words.
func (c Check) Name() string {
	switch c.What {
	case "tensor":
		return "relative L2 of the tensor"
	case LargestElement:
		return "largest element, over a reference of zero,"
	}
	return "relative L2 of the worst " + c.What
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

// factor is how many times the tensor's limit a slice of an axis may be off.
func factor(a measure.AxisError) float64 { return sliceFactor * spread(a.Size, a.Elements) }

// channel is the role of an axis of features.
const channel = "channel"

// limited are the axes of a pair whose worst slices have limits.
func limited(m *measure.Metrics) []measure.AxisError {
	if !m.OneRow {
		return m.Axes
	}
	return slices.DeleteFunc(slices.Clone(m.Axes), func(a measure.AxisError) bool { return a.Axis == channel })
}

// newGate holds the errors of a pair against limits: one for the tensor, one for each of some axes.
func newGate(m *measure.Metrics, axes []measure.AxisError, from string, limit float64, slice func(a measure.AxisError) float64) *Gate {
	g := &Gate{From: from, Tolerance: m.RelL2, Checks: []Check{{"tensor", m.RelL2, measure.Number(limit)}}}
	for _, a := range axes {
		of := slice(a)
		g.Checks = append(g.Checks, Check{a.Axis, a.RelL2, measure.Number(of)})
		factor := factor(a)
		if limit > 0 {
			factor = of / limit
		}
		g.Tolerance = max(g.Tolerance, measure.Number(measure.Ratio(float64(a.RelL2), factor)))
	}
	return g
}

// ByTable decides by the table, for what comes out of arithmetic in a dtype.
func ByTable(m *measure.Metrics, arithmetic hooks.DType, early bool) *Gate {
	limit, from := table[arithmetic].through, tableFrom+arithmetic.String()
	if early {
		limit, from = table[arithmetic].before, from+BeforeLayers
	}
	limit = max(limit, min(limit+2*lastRounding(m, arithmetic), widest)) // both sides are rounded
	return newGate(m, limited(m), from, limit, func(a measure.AxisError) float64 { return limit * factor(a) })
}

// lastRounding is what rounding to a dtype may change a tensor by beyond the unit roundoff that limits are made of, as relative L2: nothing for normal
// numbers, and where the reference's are smaller on average, half the smallest number of the dtype over their root mean square.
func lastRounding(m *measure.Metrics, d hooks.DType) float64 {
	rms := float64(m.Norm) / math.Sqrt(float64(m.Compared))
	if !(rms > 0 && rms < floats.SmallestNormal(d)) {
		return 0
	}
	return floats.RoundingError(d, rms) / rms
}

// Worst says which check failed by most.
func (g *Gate) Worst() string {
	var worst Check
	for _, c := range g.Checks {
		if !c.Passed() && (worst.What == "" || !(c.Error/c.Limit <= worst.Error/worst.Limit)) {
			worst = c
		}
	}
	return fmt.Sprintf("%s is %.3g, the limit %.3g", worst.Name(), float64(worst.Error), float64(worst.Limit))
}

// Tolerant reports whether the gate has limits: ids, masks and booleans are equal or not.
func (g *Gate) Tolerant() bool { return g != nil && len(g.Checks) > 0 }
