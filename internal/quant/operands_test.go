package quant

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Wherever numbers are within their bounds, each kernel makes of them what is within the bounds of the result: those of one kernel hold for
// the other, too, where the numbers are not exact.
func TestBoundsOfRoundedOperandsHold(t *testing.T) {
	for _, format := range []string{"Q8_0", "Q4_K", "F16", "BF16", "int8, by row"} {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				kernels := Operands(format)
				o := kernels[0]
				n := 2 * max(o.Elements, 4)
				x, near, bound := make([]float64, n), make([]float64, n), make([]float64, n)
				size := math.Pow(10, rapid.Float64Range(-4, 3).Draw(t, "size"))
				rel := math.Pow(2, rapid.Float64Range(-23, -4).Draw(t, "relative bound"))
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
				for i := range x {
					x[i] = float64(float32(size * (2*rng.Float64() - 1)))
					bound[i] = rel * math.Abs(x[i])
					near[i] = x[i] + bound[i]*(2*rng.Float64()-1)
				}
				before := slices.Clone(bound)
				o.Round(len(x), x, bound)
				for _, other := range kernels {
					if other.Name != o.Name {
						continue
					}
					y := slices.Clone(near)
					other.Round(len(y), y, nil)
					for i := range y {
						if d := math.Abs(y[i] - x[i]); d > bound[i]*(1+1e-9) {
							t.Fatalf("element %d is off by %g, the bound is %g (it was %g)", i, d, bound[i], before[i])
						}
					}
				}
			})
		})
	}
}

// What is exact stays so: no bound comes out of none.
func TestRoundedOperandsOfExactNumbersAreExact(t *testing.T) {
	for _, format := range []string{"Q8_0", "Q4_0", "Q5_0", "Q4_K", "Q5_K", "Q6_K", "F16", "BF16", "int8, by row"} {
		for _, o := range Operands(format) {
			x, bound := make([]float64, 256), make([]float64, 256)
			for i := range x {
				x[i] = float64(float32(math.Sin(float64(i * i))))
			}
			was := slices.Clone(x)
			o.Round(len(x), x, bound)
			if slices.ContainsFunc(bound, func(e float64) bool { return e != 0 }) {
				t.Errorf("%s: exact numbers have bounds", format)
			}
			worst := 0.0
			for i := range x {
				worst = max(worst, math.Abs(x[i]-was[i]))
			}
			if worst == 0 || worst > 0.005 {
				t.Errorf("%s: the numbers moved by up to %g, want some, and at most half a step of 8 bits", format, worst)
			}
		}
	}
	for _, format := range []string{"Q4_1", "Q5_1", "F32", "GPTQ", "int8, one scale"} {
		if Operands(format) != nil {
			t.Errorf("%s: nothing is known of it", format)
		}
	}
}
