package program

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
)

// Results that are finished together, and by the short ways that most results go, have the bits of the definition.
func TestFinishedTogetherIsFinishedAlone(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), 1, 0x1p-126, 0x1.8p-127, 0x1p-149, 0x1.fffffep127, 0x1p128, math.Inf(1), math.Inf(-1), math.NaN(), 1e300}
	value := rapid.OneOf(rapid.Float64Range(-4, 4), rapid.Map(rapid.Float32(), func(x float32) float64 { return float64(x) }), rapid.SampledFrom(special))
	bound := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e-6), rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0x1p-150, 0x1p-127, 1e38, math.Inf(1)}))
	rapid.Check(t, func(t *rapid.T) {
		a := Arith{DType: rapid.SampledFrom([]hooks.DType{hooks.F32, hooks.BF16, hooks.F16}).Draw(t, "dtype"), Emulated: true, Bounds: true, Hull: rapid.Bool().Draw(t, "hull")}
		f := a.finisher(rapid.SampledFrom([]Rounding{Plain, Model, Single, Half, None, Welford}).Draw(t, "rounding"))
		f.definite = !a.Hull && rapid.Bool().Draw(t, "definite")
		n := rapid.IntRange(1, 8).Draw(t, "n")
		o := operand{rapid.SliceOfN(value, n, n).Draw(t, "values"), rapid.SliceOfN(bound, n, n).Draw(t, "bounds")}
		got := operand{slices.Clone(o.v), slices.Clone(o.e)}
		f.all(got, nil)
		for i, v := range o.v {
			rounded := v
			if f.round < None {
				rounded = float64(float32(v))
			}
			want, e := f.narrowBound(rounded, f.bound(rounded, v, o.e[i]))
			if bitsOf(got.v[i]) != bitsOf(want) || bitsOf(got.e[i]) != bitsOf(e) {
				t.Fatalf("%s of %s: %v ± %v becomes %v ± %v, want %v ± %v", f.round, a.DType, v, o.e[i], got.v[i], got.e[i], want, e)
			}
		}
	})
}
