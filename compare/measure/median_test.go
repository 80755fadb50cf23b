package measure

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLowerMedian holds the selected median to that of the sorted numbers: of any order, of few different ones, and of those that
// choose a bad middle one.
func TestLowerMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 1))
	orders := map[string]func(i, n int) float64{
		"any":        func(int, int) float64 { return rng.Float64() },
		"few":        func(int, int) float64 { return float64(rng.IntN(3)) },
		"equal":      func(int, int) float64 { return 1 },
		"ascending":  func(i, _ int) float64 { return float64(i) },
		"descending": func(i, n int) float64 { return float64(n - i) },
		"a peak":     func(i, n int) float64 { return float64(min(i, n-1-i)) },
		"a valley":   func(i, n int) float64 { return float64(max(i, n-1-i)) },
	}
	for name, of := range orders {
		for _, n := range []int{1, 2, 3, 31, 32, 33, 34, 65, 100, 1000, 2048, 2051} {
			x := make([]float64, n)
			for i := range x {
				x[i] = of(i, n)
			}
			sorted := slices.Sorted(slices.Values(x))
			if got := lowerMedian(slices.Clone(x)); got != sorted[(n-1)/2] {
				t.Errorf("%s, %d numbers: %v, want %v", name, n, got, sorted[(n-1)/2])
			}
		}
	}
}
