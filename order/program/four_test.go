package program

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// In each order four sums at a time have the bits that each has by itself, whatever the numbers are.
func TestFourSumsAreOne(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.NaN(), math.MaxFloat32, 0x1p-149, 1e-300}
	number := rapid.OneOf(rapid.Float64Range(-4, 4), rapid.Map(rapid.Float32(), func(x float32) float64 { return float64(x) }), rapid.SampledFrom(special))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 150).Draw(t, "n")
		s := rapid.SampledFrom(Summations()).Draw(t, "order")
		if s.Pairwise && n == 0 {
			return // no program has a sum of nothing
		}
		row := rapid.SliceOfN(number, n, n)
		x, y := row.Draw(t, "x"), [4][]float64{}
		for i := range y {
			y[i] = row.Draw(t, fmt.Sprintf("row %d", i))
		}
		for i, got := range s.four(x, y) {
			want, other := s.dot(x, y[i]), s.add(n, func(k int) (float64, float64) { return y[i][k], x[k] })
			if bitsOf(got) != bitsOf(want) || bitsOf(got) != bitsOf(other) {
				t.Fatalf("%s, row %d of four: %x, by itself %x, product by product %x", s, i, got, want, other)
			}
		}
	})
}

func bitsOf(x float64) uint64 {
	if x != x {
		x = math.NaN()
	}
	return math.Float64bits(x)
}

// BenchmarkSummation is what a product of 2048 takes in each order: by itself, and among four.
func BenchmarkSummation(b *testing.B) {
	x := make([]float64, 2048)
	var y [4][]float64
	for k := range x {
		x[k] = float64(float32(math.Sin(float64(k))))
	}
	for i := range y {
		y[i] = append([]float64{}, x...)
	}
	for _, s := range Summations() {
		b.Run(s.String()+"/one", func(b *testing.B) {
			for b.Loop() {
				for i := range y {
					s.dot(x, y[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(4*len(x)), "ns/product")
		})
		b.Run(s.String()+"/four", func(b *testing.B) {
			for b.Loop() {
				s.four(x, y)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(4*len(x)), "ns/product")
		})
	}
}
