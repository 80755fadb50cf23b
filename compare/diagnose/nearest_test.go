package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
)

// An edit that nearly gives the trace in one arithmetic is tried in the others: here the first arithmetic is off by a thousandth in every element, and the
// second is the engine's. Without the second nothing is named, and where the trace is something else nothing is either.
func TestEditsThatComeNearestAreTriedInOtherArithmetics(t *testing.T) {
	m := model(t)
	twice := func(by float64) *diagnose.Entry {
		return planted(t, m, "layers.0.attn_residual", 0, func(in, _ [][]float64) []float64 {
			y := slices.Clone(in[0])
			for i := range y {
				y[i] = by * (in[0][i] - in[1][i])
			}
			return y
		})
	}
	for _, c := range []struct {
		what   string
		others []float64
		want   string
	}{
		{"the engine's arithmetic", []float64{1.002, 1}, "is a difference, not a sum"},
		{"no other arithmetic", nil, ""},
		{"two that are not the engine's", []float64{1.002, 0.5}, ""},
	} {
		f, err := diagnose.FindStepsIn(t.Context(), m, []*diagnose.Entry{twice(1.001)}, func(yield func([]*diagnose.Entry, error) bool) {
			for _, by := range c.others {
				if !yield([]*diagnose.Entry{twice(by)}, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if f.Named() != (c.want != "") || !strings.Contains(f.Text(), c.want) {
			t.Errorf("%s: %q, want %q", c.what, f.Text(), c.want)
		}
		m = model(t)
	}
}
