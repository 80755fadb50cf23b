package program

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// usual is [finisher.one] with bounds, to the bit, for the result of a step that rounds to float32, or to a model's dtype with the exponents of float32, far
// from the ends of float32. ok reports that it is one, as nearly all results are.
func (f finisher) usual(v, e float64) (r, bound float64, ok bool) {
	if f.round > Model || f.Hull {
		return 0, 0, false
	}
	n, size := float64(float32(v)), math.Abs(v)
	if e != 0 || n != v && !f.definite {
		e += unit32*(size+e) + math.Abs(n-v)
	}
	switch {
	case !(size-e >= normal32 && size+e < overflow32/2):
		return 0, 0, false
	case f.round == Plain:
		return n, e, true
	case f.DType == hooks.F32:
		return n, max(float64(float32(n+e))-n, n-float64(float32(n-e))), true
	case f.DType == hooks.BF16:
		r = toBF16(n)
		return r, max(toBF16(n+e)-r, r-toBF16(n-e)), true
	}
	return 0, 0, false
}

// toBF16 rounds to bfloat16, to the nearest, ties to even. |x| is between the least and half of the largest normal number of float32.
func toBF16(x float64) float64 {
	const drop = 53 - 8
	b := math.Float64bits(x)
	return math.Float64frombits((b + (1<<(drop-1) - 1 + b>>drop&1)) &^ (1<<drop - 1))
}
