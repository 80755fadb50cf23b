package products

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// numberOf draws a number of a dtype: usual ones, whose sums round, and those at which arithmetic is special.
func numberOf(d hooks.DType) *rapid.Generator[float64] {
	special := []float64{
		0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1,
		math.SmallestNonzeroFloat32, -math.MaxFloat32, 0x1p-126, 0x1p-24, 65504, 0x1.fep127,
	}
	if d == hooks.F64 {
		special = append(special, math.SmallestNonzeroFloat64, math.MaxFloat64, 0x1p-600, -0x1p600, 0x1p-1022)
	}
	return rapid.Custom(func(t *rapid.T) float64 {
		if rapid.IntRange(0, 30).Draw(t, "kind") == 0 {
			return rapid.SampledFrom(special).Draw(t, "special")
		}
		x := float64(rapid.Int64Range(-1<<52, 1<<52).Draw(t, "digits")) * 0x1p-50
		return floats.Round(d, math.Ldexp(x, rapid.IntRange(-9, 9).Draw(t, "exponent")))
	})
}

func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }

// Every sum has the bits of the plain loop over its own two rows, whatever computes it: vectors of either width or none, any
// number of rows on either side, any length, wherever the numbers lie in memory, and whether or not it is known how many digits
// they have.
func TestEverySumIsThePlainOne(t *testing.T) {
	best := width
	t.Cleanup(func() { width = best })
	rapid.Check(t, func(t *rapid.T) {
		n, rows, count := rapid.IntRange(0, 200).Draw(t, "n"), rapid.IntRange(1, 19).Draw(t, "rows"), rapid.IntRange(1, 2*Tile+1).Draw(t, "count")
		of := rapid.SampledFrom([]hooks.DType{hooks.F64, hooks.F32, hooks.BF16, hooks.F16})
		draw := func(name string, d hooks.DType, n, room int) []float64 {
			few := rapid.SliceOfN(numberOf(d), 1, 60).Draw(t, name)
			off := rapid.IntRange(0, 7).Draw(t, "off "+name)
			all := make([]float64, off+room)[off:]
			for i := range all {
				if all[i] = math.NaN(); i < n {
					all[i] = few[i*7919%len(few)]
				}
			}
			return all
		}
		w := draw("w", of.Draw(t, "dtype of w"), count*n, room(count)*n)
		x := draw("x", of.Draw(t, "dtype of x"), rows*n, rows*n)
		digits := 0
		if rapid.Bool().Draw(t, "known") {
			digits = Digits(w[:count*n])
		}
		for _, width = range []int{0, 4, 8} {
			if width > best {
				continue
			}
			sums := make([]float64, count*rows)
			NewRight(x, n).Dots(sums, w, count, digits)
			squares := append([]float64(nil), x...)
			Square(squares)
			largest := 0.0
			for i, v := range x {
				if largest = max(largest, math.Abs(v)); !same(squares[i], v*v) {
					t.Fatalf("vectors of %d: the square of %x is %x", width, v, squares[i])
				}
			}
			if got := Largest(x); largest == largest && got != largest {
				t.Fatalf("vectors of %d: the largest is %x, want %x", width, got, largest)
			}
			for i, got := range sums {
				if want := Dot(w[i%count*n:][:n], x[i/count*n:][:n]); !same(got, want) {
					t.Fatalf("vectors of %d: row %d of w and %d of x: %x, want %x", width, i%count, i/count, got, want)
				}
			}
		}
	})
}

// Digits counts what decides whether a product is rounded: a product of numbers of 53 digits or fewer together is not, and a number of one
// digit more than that makes one that is.
func TestDigits(t *testing.T) {
	for _, c := range []struct {
		x    float64
		want int
	}{
		{0, 0},
		{1, 1},
		{-0.5, 1},
		{3, 2},
		{floats.Round(hooks.BF16, 1/3.), 8},
		{floats.Round(hooks.F16, 1/3.), 11},
		{1 + 0x1p-23, 24},
		{1 + 0x1p-52, 53},
		{math.Inf(-1), 0},
		{math.NaN(), 0},
		{0x1p-600, inexact},
		{0x1p600, inexact},
		{math.SmallestNonzeroFloat64, inexact},
	} {
		if got := Digits([]float64{c.x}); got != c.want {
			t.Errorf("%g has %d digits, want %d", c.x, got, c.want)
		}
	}
	odd := 1 + 0x1p-26 // 27 digits: its square has 53
	for _, c := range []struct {
		x     float64
		exact bool
	}{{odd - 0x1p-26 + 0x1p-25, true}, {odd, false}} {
		if got := NewRight([]float64{c.x}, 1).exact(27); width > 0 && got != c.exact {
			t.Errorf("a product of 27 digits with %g is exact: %v", c.x, got)
		}
	}
}

func BenchmarkDots(b *testing.B) {
	const n, rows = 2048, 16
	x, w := make([]float64, rows*n), make([]float64, Tile*n)
	for i := range x {
		x[i] = floats.Round(hooks.BF16, math.Sin(float64(i)))
	}
	for i := range w {
		w[i] = floats.Round(hooks.BF16, math.Cos(float64(i)))
	}
	sums := make([]float64, Tile*rows)
	best := width
	b.Cleanup(func() { width = best })
	for _, c := range []struct {
		name          string
		width, digits int
	}{{"plain", 0, 0}, {"avx2", 4, 0}, {"avx2 exact", 4, 8}, {"avx512", 8, 0}, {"avx512 exact", 8, 8}} {
		if c.width > best {
			continue
		}
		b.Run(c.name, func(b *testing.B) {
			width = c.width
			r := NewRight(x, n)
			for b.Loop() {
				r.Dots(sums, w, Tile, c.digits)
			}
			b.ReportMetric(float64(b.N)*Tile*rows*n/b.Elapsed().Seconds()/1e9, "Gproducts/s")
		})
	}
}
