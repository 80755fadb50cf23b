package measure_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
)

// drawPair draws two tensors of one shape: mostly near each other, with zeros of both signs, NaN and infinities.
func drawPair(t *rapid.T) testengine.Pair {
	p := testengine.Pair{
		Shape: rapid.SliceOfN(rapid.IntRange(1, 4), 0, 4).Draw(t, "shape"),
		DType: rapid.SampledFrom([]hooks.DType{hooks.F64, hooks.F32, hooks.F16, hooks.BF16}).Draw(t, "dtype"),
	}
	size, _ := hooks.Elements(p.Shape)
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}
	for range size {
		r := rapid.Float64Range(-100, 100).Draw(t, "r")
		l := r
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			l = rapid.SampledFrom(special).Draw(t, "l")
		case 1:
			r = rapid.SampledFrom(special).Draw(t, "r")
		case 2:
			l = rapid.SampledFrom(special).Draw(t, "both")
			r = l
		case 3, 4, 5:
			l = r * (1 + rapid.Float64Range(-0.1, 0.1).Draw(t, "noise"))
		}
		p.Local = append(p.Local, floats.Round(p.DType, l))
		p.Reference = append(p.Reference, floats.Round(p.DType, r))
	}
	return p
}

// metricsOf measures two tensors.
func metricsOf(t testing.TB, l, r *capture.Trace) *measure.Metrics {
	t.Helper()
	left, _ := l.Lookup(0, "x")
	right, _ := r.Lookup(0, "x")
	m, err := measure.Tensors(t.Context(), l, r, left, right)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ofPair measures a pair.
func ofPair(t testing.TB, p testengine.Pair) *measure.Metrics {
	t.Helper()
	l, r := p.Traces(t)
	return metricsOf(t, l, r)
}

// TestSidesChangePlaces has what is symmetric, and how the rest changes, when local and reference change places.
func TestSidesChangePlaces(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		l, r := drawPair(t).Traces(outer)
		m, w := metricsOf(outer, l, r), metricsOf(outer, r, l)
		near(t, "max abs", m.MaxAbs, float64(w.MaxAbs), 0)
		near(t, "RMS", m.RMS, float64(w.RMS), 0)
		near(t, "cosine", m.Cosine, float64(w.Cosine), 1)
		if m.Unequal != w.Unequal || m.MaxULP != w.MaxULP || m.NonFinite != w.NonFinite || m.NaNBoth != w.NaNBoth {
			t.Fatalf("counts %+v and, changed, %+v", m, w)
		}
		if diff := cmp.Diff(fmt.Sprint(m.Local), fmt.Sprint(w.Reference)); diff != "" {
			t.Fatal(diff)
		}
		if m.Norm > 0 && w.Norm > 0 && !math.IsInf(float64(m.RelL2), 0) {
			near(t, "relative L2 times the norm", m.RelL2*m.Norm, float64(w.RelL2*w.Norm), 0)
		}
	})
}

// TestStandardDeviationFarFromZero has numbers whose squares leave nothing of their differences in float64.
func TestStandardDeviationFarFromZero(t *testing.T) {
	for _, center := range []float64{1e5, 1e8, 1e12} {
		rng := rand.New(rand.NewPCG(5, 5))
		o := oracle{shape: []int{3, 25000}, dl: hooks.F64, dr: hooks.F64}
		for range 75000 {
			o.l = append(o.l, center+rng.NormFloat64())
		}
		o.r = o.l
		m := ofPair(t, testengine.Pair{Shape: o.shape, DType: hooks.F64, Local: o.l, Reference: o.l})
		std := o.std(o.l, o.counted())
		if off := math.Abs(float64(m.Local.Std)/std - 1); off > 1e-14 {
			t.Errorf("at %g the standard deviation is %v, want %v: off by %g", center, m.Local.Std, std, off)
		}
	}
}
