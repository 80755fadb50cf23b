package isolate_test

import (
	"testing"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
)

// A fitted factor is the error where it leaves less than it explains, and is clearly neither 1 nor 0. Tensors that have nothing to do with each other have a best factor, too.
func TestOnlyAClearFactorIsTheError(t *testing.T) {
	for _, c := range []struct {
		scale, off float64
		elements   int64
		want       bool
	}{
		{1.41406, 1e-6, 7680, true},
		{-1, 1e-4, 7680, true},
		{1.02, 1e-4, 7680, true},
		{1.02, 3e-4, 7680, false}, // the rest is larger
		{0.00533450921, 0.02, 7680, false},
		{-0.00387749726, 0.01, 12288, false},
		{0.0642722912, 0.01, 7680, false},
		{26.3575419, 0.4, 7680, false},
		{1, 1e-9, 7680, false},
	} {
		cert := isolate.Certificate{Outcome: isolate.Bug, Outside: c.elements, Elements: c.elements, Scale: measure.Number(c.scale), ScaleError: measure.Number(c.off)}
		if got := cert.Factor(); got != c.want {
			t.Errorf("%g ± %g of %d elements: %t", c.scale, c.off, c.elements, got)
		}
	}
}
