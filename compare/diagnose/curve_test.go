package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawnSamples are values of a function at drawn places, with errors of a relative size.
func drawnSamples(of func(x float64) float64, n int, off float64) []sample {
	rng := rand.New(rand.NewPCG(3, 4))
	var all []sample
	for range n {
		x := 6*rng.Float64() - 3
		y := of(x)
		e := off * max(math.Abs(y), 1e-3)
		all = append(all, sample{x, y + e*(2*rng.Float64()-1), e})
	}
	return merged(all)
}

// A curve has as few polynomials as its values, goes through all of them, and bends where they do. Noise is on no curve.
func TestCurvesGoThroughTheirPoints(t *testing.T) {
	for _, c := range []struct {
		name         string
		of           func(x float64) float64
		degree, most int
		breaks       []float64 // where the polynomials meet; nil for points that none go through
	}{
		{"one line", func(x float64) float64 { return 2 - x/3 }, 1, 1, []float64{}},
		{"three lines", func(x float64) float64 { return max(min(0.2*x+0.5, 0.9), 0.1) }, 1, 3, []float64{-2, 2}},
		{"two of three lines", func(x float64) float64 { return max(min(0.2*x+0.5, 0.9), 0.1) }, 1, 2, nil},
		{"a cubic", func(x float64) float64 { return x*x*x - x + 0.1 }, 3, 1, []float64{}},
		{"no square", func(x float64) float64 { return x*x*x - x + 0.1 }, 2, 1, nil},
		{"an exponential", math.Exp, 14, 1, []float64{}},
		{"noise", func(x float64) float64 { return math.Sin(1e6 * x) }, 12, 5, nil},
	} {
		for _, off := range []float64{0x1p-9, 0x1p-22} {
			points := drawnSamples(c.of, 700, off)
			got := fitCurve(points, c.degree, c.most)
			if (got == nil) != (c.breaks == nil) {
				t.Errorf("%s within %g: a curve is found: %t", c.name, off, got != nil)
				continue
			}
			if got == nil {
				continue
			}
			for k, x := range c.breaks {
				if k >= len(got.breaks) || math.Abs(got.breaks[k]-x) > 0.1 {
					t.Errorf("%s within %g: the breaks are %v", c.name, off, got.breaks)
					break
				}
			}
			read := got.written().curve()
			for _, p := range points {
				if y := read.at(p.x); math.Abs(y-p.y) > p.off {
					t.Errorf("%s within %g: %g at %g, not %g±%g", c.name, off, y, p.x, p.y, p.off)
					break
				}
			}
		}
	}
}

// Two points at one place that no number is within the errors of are on no curve; two others are one point.
func TestPointsAtOnePlaceAreMerged(t *testing.T) {
	if got := merged([]sample{{1, 2, 0.1}, {1, 2.15, 0.1}}); len(got) != 1 || math.Abs(got[0].y-2.075) > 1e-12 || math.Abs(got[0].off-0.025) > 1e-12 {
		t.Errorf("%v", got)
	}
	if got := merged([]sample{{1, 2, 0.1}, {1, 2.3, 0.1}, {2, 1, 1}}); got != nil {
		t.Errorf("%v", got)
	}
}
