package measure_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare/measure"
)

func TestDivergenceOfDistributions(t *testing.T) {
	ln3, inf, notANum := math.Log(3), math.Inf(1), math.NaN()
	tests := []struct {
		why  string
		l, r []float64
		want float64
	}{
		{"equal rows", []float64{1, 2, 3}, []float64{1, 2, 3}, 0},
		{"a constant added to all", []float64{101, 102, 103}, []float64{1, 2, 3}, 0},
		{"a quarter and three quarters from halves", []float64{5, 5}, []float64{0, ln3}, math.Log(0.5)/4 + 3*math.Log(1.5)/4},
		{"the other way it is another", []float64{0, ln3}, []float64{5, 5}, math.Log(4.0/3) / 2},
		{"halves of a pair whose rest is masked on both sides", []float64{-inf, 7, 7}, []float64{-inf, 0, ln3}, math.Log(0.5)/4 + 3*math.Log(1.5)/4},
		{"a mask by the lowest float is one, too", []float64{-math.MaxFloat32, 7, 7}, []float64{-inf, 0, ln3}, math.Log(0.5)/4 + 3*math.Log(1.5)/4},
		{"what only the reference masks costs it nothing", []float64{0, 0}, []float64{-inf, 0}, math.Ln2},
		{"what only your port masks can never be drawn", []float64{-inf, 0, 0}, []float64{0, 0, 0}, inf},
		{"however unlikely it was", []float64{-inf, 0, 0}, []float64{-2000, 0, 0}, inf},
		{"a logit of 10,000 overflows no exponential", []float64{10000, 0}, []float64{10000, 1}, 0},
		{"NaN", []float64{notANum, 0}, []float64{0, 0}, notANum},
		{"NaN in the reference", []float64{0, 0}, []float64{0, notANum}, notANum},
		{"overflow", []float64{inf, 0}, []float64{inf, 0}, notANum},
		{"all masked", []float64{-inf, -inf}, []float64{-inf, -inf}, notANum},
		{"all masked on one side", []float64{-inf, -inf}, []float64{0, 0}, notANum},
	}
	for _, tt := range tests {
		got := new(measure.Softmaxes).Divergence(tt.l, tt.r)
		if math.IsNaN(got) != math.IsNaN(tt.want) || math.Abs(got-tt.want) > 1e-14 {
			t.Errorf("%s: %g, want %g", tt.why, got, tt.want)
		}
	}
}

// Of random rows the divergence is the sum by its definition, and of rows that are nearly equal half the variance of the
// difference under the reference's distribution, which the definition's sum would lose in its own rounding.
func TestDivergenceIsThatOfItsDefinition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rapid.SliceOfN(rapid.Float64Range(-30, 30), 2, 50).Draw(rt, "reference")
		noise := rapid.SliceOfN(rapid.Float64Range(-1, 1), len(r), len(r)).Draw(rt, "noise")
		by := rapid.SampledFrom([]float64{1e-7, 1e-5, 1e-3, 0.1, 10}).Draw(rt, "scale of the noise")
		p, l := softmax(r), make([]float64, len(r))
		for i := range l {
			l[i] = r[i] + by*noise[i]
		}
		q := softmax(l)
		var want, mean, square float64
		for i := range p {
			want += p[i] * math.Log(p[i]/q[i])
			d := l[i] - r[i]
			mean += p[i] * d
			square += p[i] * d * d
		}
		// Each sum of the two softmaxes is off by up to half a unit a term, and what is wanted by the logarithm of that.
		tolerance := 1e-10*math.Abs(want) + float64(len(r))*0x1p-51
		if by <= 1e-3 {
			want, tolerance = (square-mean*mean)/2, 2*by*square+1e-28
		}
		got := new(measure.Softmaxes).Divergence(l, r)
		if !(got >= 0) || !(math.Abs(got-want) <= tolerance) {
			rt.Errorf("%g, want %g", got, want)
		}
	})
}

func softmax(row []float64) []float64 {
	out, sum := make([]float64, len(row)), 0.0
	for i, x := range row {
		out[i] = math.Exp(x - slices.Max(row))
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
