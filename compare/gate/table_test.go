package gate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// metricsOf measures a pair.
func metricsOf(t *testing.T, p testengine.Pair) *measure.Metrics {
	t.Helper()
	l, r := p.Traces(t)
	left, _ := l.Lookup(0, "x")
	right, _ := r.Lookup(0, "x")
	m, err := measure.Tensors(t.Context(), l, r, left, right)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// byTable decides on a pair by the table.
func byTable(t *testing.T, p testengine.Pair) (*gate.Gate, *measure.Metrics) {
	t.Helper()
	m := metricsOf(t, p)
	return gate.ByTable(m, p.DType, false), m
}

// some is a run of values that all differ.
var some = []float64{1, -2, 3, -4, 5, -6, 7, -8}

// times multiplies each value.
func times(values []float64, by float64) []float64 {
	out := slices.Clone(values)
	for i := range out {
		out[i] *= by
	}
	return out
}

func TestGateSaysWhatItDid(t *testing.T) {
	g, m := byTable(t, testengine.Pair{Shape: []int{1, 2, 4}, DType: hooks.F32, Local: times(some, 1.5), Reference: some})
	if g.From != "table, float32" || len(g.Checks) != 3 || g.Checks[0].What != "tensor" {
		t.Fatalf("gate %+v", g)
	}
	if c := g.Checks[0]; math.Abs(float64(c.Error)-0.5) > 1e-12 || c.Limit != 1e-3 || c.Passed() {
		t.Errorf("check of the tensor %+v", c)
	}
	if g.Tolerance != m.RelL2 {
		t.Errorf("the smallest tolerance that would have passed is %g, the error %g", g.Tolerance, m.RelL2)
	}
	// A slice may be off by more than the tensor, the more so the smaller it is: here 3·(1 + √(2 ln 2 / 4)) times.
	if want := 1e-3 * 3 * (1 + math.Sqrt(2*math.Log(2)/4)); math.Abs(float64(g.Checks[1].Limit)-want) > 1e-15 {
		t.Errorf("limit of axis 1 is %g, want %g", g.Checks[1].Limit, want)
	}
}

// TestToleranceIsTheSmallestThatPasses has a pair whose worst slice, not the whole, is what fails.
func TestToleranceIsTheSmallestThatPasses(t *testing.T) {
	n := testengine.Pair{Shape: []int{256, 64}, DType: hooks.F32}
	for i := range 256 * 64 {
		v := float64(i%7) - 3.5
		n.Reference = append(n.Reference, v)
		if i/64 == 100 {
			v *= 1 + 6e-3
		}
		n.Local = append(n.Local, v)
	}
	g, _ := byTable(t, n)
	if g.Passed() || !g.Checks[0].Passed() {
		t.Fatalf("gate %+v", g)
	}
	for _, c := range g.Checks {
		scaled := g.Tolerance / 1e-3 * c.Limit // the limits for that tolerance
		if c.Error > scaled*(1+1e-12) {
			t.Errorf("%s: %g is beyond the %g that tolerance %g allows", c.What, c.Error, scaled, g.Tolerance)
		}
	}
}

// TestNoFalseAlarmOnSmallSlices has a single token with a large vocabulary: every logit is a slice of one element, and
// the worst of so many is far from an average one.
func TestNoFalseAlarmOnSmallSlices(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, noise := range []float64{0.05, 0.09} {
		n := testengine.Pair{Shape: []int{1, 1, 50_000}, DType: hooks.BF16}
		for range 50_000 {
			v := rng.NormFloat64()
			n.Reference, n.Local = append(n.Reference, v), append(n.Local, v+noise*rng.NormFloat64())
		}
		if g, _ := byTable(t, n); !g.Passed() {
			t.Errorf("noise of %g of the norm: %s", noise, g.Worst())
		}
	}
}

// TestSlicesOfSmallNorm has channels with next to nothing in them, whose own relative error is of no meaning: noise of the
// tensor's size is a hundred times what they hold. They raise nothing, and an error in a channel of the usual size does.
func TestSlicesOfSmallNorm(t *testing.T) {
	const tokens, channels = 64, 64
	rng := rand.New(rand.NewPCG(7, 7))
	n := testengine.Pair{Shape: []int{1, tokens, channels}, DType: hooks.BF16}
	for i := range tokens * channels {
		v := rng.NormFloat64()
		if i%channels < 20 { // a third of the channels, so that their size is not the median
			v *= 1e-4
		}
		n.Reference, n.Local = append(n.Reference, v), append(n.Local, v+0.01*rng.NormFloat64())
	}
	own := 0.0
	for c := range channels {
		var diff, ref float64
		for t := range tokens {
			i := t*channels + c
			diff, ref = diff+(n.Local[i]-n.Reference[i])*(n.Local[i]-n.Reference[i]), ref+n.Reference[i]*n.Reference[i]
		}
		own = max(own, math.Sqrt(diff/ref))
	}
	g, m := byTable(t, n)
	if worst := float64(m.Axes[1].RelL2); own < 50 || !(worst <= 0.02) || !g.Passed() {
		t.Errorf("relative to its own norm the worst channel is %g off, relative to the median %g: %+v", own, worst, g)
	}
	for t := range tokens {
		n.Local[t*channels+40] *= -1
	}
	if g, m := byTable(t, n); g.Passed() || m.Axes[1].Worst != 40 {
		t.Errorf("a negated channel passes: %t, worst channel %d", g.Passed(), m.Axes[1].Worst)
	}
}
