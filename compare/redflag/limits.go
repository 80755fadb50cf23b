package redflag

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// DefaultMagnitude is beyond what half of a tensor's elements are not in a run that is right, unless [Options] has another.
const DefaultMagnitude = 1000

// limits are what raises a flag. A test tightens each towards what the goldens, which are healthy, have; docs/inside.md has
// the margins.
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
	plain     float64 // different numbers, neither 0 nor ±1, of which none fits a narrower type by chance
}

// attentionLimits are those of probabilities.
type attentionLimits struct {
	sum      float64 // of the tolerance of sumTolerance
	uniform  float64 // how far a weight is from the mean of its row, of that mean
	stuck    float64 // the least weight on the one key
	fully    float64 // the least weight on the key, for a head that is stuck in only one kind of layers
	repeated float64 // the largest difference of two weights
	ignored  float64 // the largest weight of all earlier keys together
}

// rotationLimits are those of queries, keys and tables.
type rotationLimits struct {
	unturned  float64 // the relative change of a vector by its rotation
	angle     float64 // the largest difference of two cosines or sines
	backwards float64 // radians that the first angle goes back, beyond what bfloat16 tables are wrong by
}

// stateLimits are those of hidden states.
type stateLimits struct {
	static    float64 // the relative change of a state by a layer
	identical float64 // the relative difference of two tokens' states
}

// lossLimits are those of the losses of a run.
type lossLimits struct {
	plateau float64 // the share by which the best loss is to fall
	shaking float64 // the median step between two losses, of the median loss
	turning float64 // share of the losses that are turning points
	rising  float64 // how many median steps the median loss rises
	spike   float64 // how many median steps the last loss is above those before it
	jump    float64 // the same, of the median loss
}

// gradientLimits are those of the norms of gradients.
type gradientLimits struct {
	apart   float64 // the smallest norm of a group's gradients, of the largest
	growing float64 // the norm of a group's gradients, of all gradients at the start
}

var defaults = limits{
	values:    valueLimits{magnitude: DefaultMagnitude, overflow: 1. / 8, plain: plainNumbers},
	attention: attentionLimits{sum: 1, uniform: 0.01, stuck: 0.99, fully: 1 - 1e-6, repeated: 1e-6, ignored: 1e-6},
	rotation:  rotationLimits{unturned: 1e-3, angle: 1e-6, backwards: 0.05},
	states:    stateLimits{static: 1e-5, identical: 1e-5},
	losses:    lossLimits{plateau: 1e-3, shaking: 0.1, turning: 0.9, rising: 2, spike: 10, jump: 0.5},
	gradients: gradientLimits{apart: 1e-6, growing: 1000},
}

// How much there has to be before it can be judged.
const (
	// Fewer elements can be equal by chance, as the few numbers of a router in saturation are.
	minZero, minConstant = 2, 16

	// Routers and coefficients, which have a few numbers a token, are kept wider at no cost.
	fewNumbers = 16

	uniformKeys   = 4
	stuckRows     = 4
	repeatedPairs = 2
	turnedTokens  = 64 // looked at in one pass, spread over it

	argmaxRows, argmaxIDs = 4, 3
	unchangedPasses       = 3
	// A small model may repeat a token that it is fed, a few times.
	fedPasses, repeatedPasses = 4, 8
	// One head of each layer. A trained head may look at the first token alone, in later layers.
	headLayers, stuckLayers, stuckLater = 2, 3, 8
	plainNumbers                        = 32
	plateauLosses                       = 8
)

// maxRow is the longest row that is held in memory, in elements: four times the largest vocabulary, and longer than any
// context. A file with holes can claim rows of any length.
const maxRow = 1 << 20

// maxHeads and maxQueries are how much is judged by head, and by row, which takes memory for each.
const maxHeads, maxQueries = 1 << 10, 1 << 12

// sumTolerance is how far a sum of S probabilities of a dtype may be from 1: each is rounded once, to the dtype (together u,
// and half of the smallest number each where they are that small), after a softmax in float32, whose sum of S terms is off
// by a few √S of its unit. Goldens have at most 2.9 units of float32.
func sumTolerance(d hooks.DType, keys int) float64 {
	u := floats.Unit(d)
	least := 0.
	if d != hooks.F64 {
		least = math.Ldexp(u, floats.MinExponent(d)+1)
	}
	return 2*u + 8*math.Sqrt(float64(keys))*floats.Unit(hooks.F32) + float64(keys)*least/2
}
