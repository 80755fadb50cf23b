package isolate

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// The last place is the distance from a number of the dtype to the next one away from zero, of the smallest numbers and of zero, too.
func TestLastPlaceIsTheDistanceOfNumbers(t *testing.T) {
	for _, d := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
		for e := -160; e < 128; e++ {
			for _, m := range []float64{0, 1, 1.25, -1.5} {
				x := floats.Round(d, math.Ldexp(m, e))
				if math.Abs(x) >= floats.Largest(d) {
					continue
				}
				got := LastPlace(d, x)
				next := math.Abs(x) + got
				if between := floats.Round(d, math.Abs(x)+got/2); !(got > 0) || floats.Round(d, next) != next || between != next && between != math.Abs(x) {
					t.Fatalf("%s at %g: %g, and the next number is %g", d, x, got, next)
				}
			}
		}
		for _, x := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
			if got := LastPlace(d, x); got != 0 {
				t.Errorf("%s at %g: %g", d, x, got)
			}
		}
	}
}
