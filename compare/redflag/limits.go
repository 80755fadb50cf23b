package redflag

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// DefaultMagnitude is the limit of magnitude: half of the elements of a tensor beyond the limit raise a flag. [Options] may have another limit.
const DefaultMagnitude = 1000

// limits hold the values at which a flag is raised. A test tightens each limit towards the values of the goldens, which are healthy. docs/results/inside.md
// has the margins.
type limits struct {
	values    valueLimits
	attention attentionLimits
	rotation  rotationLimits
	states    stateLimits
	losses    lossLimits
	gradients gradientLimits
}

// valueLimits limit the numbers of a single tensor.
type valueLimits struct {
	magnitude float64
	overflow  float64 // share of the largest number of a dtype: an eighth is three doublings of headroom
	plain     float64 // different numbers, neither 0 nor ±1: so many numbers do not fit a narrower type by chance
}

// attentionLimits limit probabilities.
type attentionLimits struct {
	sum      float64 // times the tolerance of sumTolerance
	uniform  float64 // the distance of a weight from the mean of its row, divided by the mean
	stuck    float64 // the least weight on the one key
	fully    float64 // the same, for a head that is stuck in only one kind of layer
	repeated float64 // the largest difference of two weights
	ignored  float64 // the largest weight of all earlier keys, summed
}

// rotationLimits limit queries, keys and rotary tables.
type rotationLimits struct {
	unturned  float64 // the relative change of a vector by its rotation
	angle     float64 // the largest difference of two cosines or sines
	backwards float64 // radians that the first angle may go back, more than the error of bfloat16 tables
}

// stateLimits limit hidden states.
type stateLimits struct {
	static    float64 // the relative change of a state by a layer
	identical float64 // the relative difference of two tokens' states
}

// lossLimits limit the losses of a run.
type lossLimits struct {
	plateau float64 // the share by which the best loss is to fall
	shaking float64 // the median step between two losses, divided by the median loss
	turning float64 // share of the losses that are turning points
	rising  float64 // how many median steps the median loss rises
	spike   float64 // how many median steps the last loss is above the losses before it
	jump    float64 // the same, in median losses
}

// gradientLimits limit the norms of gradients.
type gradientLimits struct {
	apart   float64 // the smallest norm of a group's gradients, divided by the largest
	growing float64 // the norm of a group's gradients, divided by the norm of all gradients at the start
}

var defaults = limits{
	values:    valueLimits{magnitude: DefaultMagnitude, overflow: 1. / 8, plain: plainNumbers},
	attention: attentionLimits{sum: 1, uniform: 0.01, stuck: 0.99, fully: 1 - 1e-6, repeated: 1e-6, ignored: 1e-6},
	rotation:  rotationLimits{unturned: 1e-3, angle: 1e-6, backwards: 0.05},
	states:    stateLimits{static: 1e-5, identical: 1e-5},
	losses:    lossLimits{plateau: 1e-3, shaking: 0.1, turning: 0.9, rising: 2, spike: 10, jump: 0.5},
	gradients: gradientLimits{apart: 1e-6, growing: 1000},
}

// The least amounts that can be judged.
const (
	// Fewer elements can be equal by chance, such as the few numbers of a saturated router.
	minZero, minConstant = 2, 16

	// Routers and coefficients have few numbers per token, and a wider dtype costs nothing.
	fewNumbers = 16

	uniformKeys   = 4
	stuckRows     = 4
	repeatedPairs = 2
	turnedTokens  = 64 // the most tokens that are compared in one pass, spread over the pass

	argmaxRows, argmaxIDs = 4, 3
	unchangedPasses       = 3
	// A small model may repeat the token that it is fed a few times.
	fedPasses, repeatedPasses = 4, 8
	// For one head of each layer. In later layers a trained head may look only at the first token.
	headLayers, stuckLayers, stuckLater = 2, 3, 8
	plainNumbers                        = 32
	plateauLosses                       = 8
)

// maxRow is the longest row that is held in memory, in elements: four times the largest vocabulary, and longer than any context. A sparse file can
// claim rows of any length.
const maxRow = 1 << 20

// maxHeads and maxQueries limit how many heads and rows are judged one by one, since each takes memory.
const maxHeads, maxQueries = 1 << 10, 1 << 12

// sumTolerance is how far a sum of S probabilities of a dtype may be from 1: 2u + 8·√S·2^-24 + S·t/2, with u the unit roundoff and t the smallest
// number of the dtype. Each probability is rounded once to the dtype, which adds u, or t/2 for each probability as small as t. The softmax before
// runs in float32, and its sum of S terms has an error of a few √S units of float32. Goldens have at most 2.9 units.
func sumTolerance(d hooks.DType, keys int) float64 {
	u := floats.Unit(d)
	least := 0.
	if d != hooks.F64 {
		least = math.Ldexp(u, floats.MinExponent(d)+1)
	}
	return 2*u + 8*math.Sqrt(float64(keys))*floats.Unit(hooks.F32) + float64(keys)*least/2
}
