package redflag

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// The limits. Beside each stands what is nearest to it in the goldens, which are healthy.
const (
	// DefaultMagnitude is the largest number that raises nothing. The goldens reach 141.
	DefaultMagnitude = 1000
	// overflowShare of the largest number of a dtype: three doublings of headroom.
	overflowShare = 1. / 8

	// minZero and minConstant are elements: fewer can be equal by chance, as the few numbers of a router in saturation are.
	minZero, minConstant = 2, 16
	// minPlain elements are neither 0 nor ±1: of so many none fits a narrower type by chance. Of the goldens, 8 do.
	minPlain = 32

	// uniformSpread is how far a weight may be from the mean of its row, of that mean; 0.099 in the flattest row.
	uniformSpread, uniformKeys = 0.01, 4
	// stuckWeight is the least weight on the one key. In the goldens no layer has all heads on one key in all rows.
	stuckWeight, stuckRows = 0.99, 4
	// repeated is the largest difference of two weights; 0.08 in the goldens.
	repeated, repeatedPairs = 1e-6, 2
	// ignored is the largest weight on all earlier keys together; 0.16 in the goldens.
	ignored = 1e-6

	// unturned is the relative change of a vector by its rotation; 0.025 in the goldens.
	unturned     = 1e-3
	turnedTokens = 64 // looked at in one pass, spread over it
	// angle is the largest difference of two cosines or sines that counts as none; 0.12 in the goldens, in bfloat16.
	angle = 1e-6
	// backwards is how far the first angle has to go back, in radians: beyond what bfloat16 tables are wrong by.
	backwards = 0.05

	// static and identical are relative L2; 0.29 and 1.05 in the goldens.
	static, identical = 1e-5, 1e-5

	argmaxRows, argmaxIDs = 4, 3
	unchangedPasses       = 3

	plateauLosses, plateauGain = 8, 1e-3
)

// maxRow is the longest row that is held in memory, in elements: four times the largest vocabulary, and longer than any
// context. A file with holes can claim rows of any length.
const maxRow = 1 << 20

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
