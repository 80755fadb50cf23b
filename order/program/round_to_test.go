package program

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// A rounding point gives the number that v rounds to, and how far those are from it that the ends of [v−e, v+e] do: near midpoints and
// powers of two, below the normal numbers and beyond the largest, and for bounds from nothing to more than v.
func TestRoundTo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	dtypes := []hooks.DType{hooks.BF16, hooks.F16, hooks.F32, hooks.F64}
	for range 400_000 {
		d := dtypes[rng.IntN(len(dtypes))]
		v := math.Float64frombits(rng.Uint64())
		if rng.IntN(4) > 0 { // a number of few digits, of any exponent that the dtype has and some that it has not
			v = math.Ldexp(float64(rng.IntN(1<<11)-1<<10), rng.IntN(290)-160)
		}
		if rng.IntN(2) == 0 { // a number of the dtype, or the middle of two
			v = floats.Round(d, v) * (1 + float64(rng.IntN(3)-1)*floats.Unit(d))
		}
		v = math.Float64frombits(math.Float64bits(v) + uint64(rng.IntN(7)-3))
		e := math.Abs(v) * math.Ldexp(rng.Float64(), 1-rng.IntN(60))
		if rng.IntN(3) == 0 { // about as far as the middle
			e = math.Abs(math.Abs(v-floats.Round(d, v))-floats.Unit(d)*math.Ldexp(1, math.Ilogb(v))) * (1 + (rng.Float64()-0.5)*0x1p-9)
		}
		got, bound := roundTo(d, v, e)
		r := floats.Round(d, v)
		want := 0.0
		if e != 0 {
			if lo, hi := floats.Round(d, v-e), floats.Round(d, v+e); lo != hi { // both may be an infinity
				want = known(max(hi-r, r-lo))
			}
		}
		if got != r && (got == got || r == r) || bound != want {
			t.Fatalf("%s: %x ± %x becomes %x ± %x, want %x ± %x", d, v, e, got, bound, r, want)
		}
	}
}
