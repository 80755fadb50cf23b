package diagnose

import (
	"math"
	"testing"
)

// What a product is off by after two roundings of float32, the second of which may be to zero, is within the bound.
func TestTwoRoundings(t *testing.T) {
	const by = 1 / 0.7
	for e := -152; e < 3; e++ {
		x := math.Ldexp(1.2345678, e)
		once := float64(float32(x * float64(float32(by))))
		if off := math.Abs(once - x*by); off > twoRoundings(x*by) {
			t.Errorf("%g is %g from %g: the bound is %g", once, off, x*by, twoRoundings(x*by))
		}
		if math.Abs(once) < 0x1p-126 && x*by > twoRoundings(x*by) {
			t.Errorf("%g is taken for zero: the bound is %g", x*by, twoRoundings(x*by))
		}
	}
	if twoRoundings(0) != 0 {
		t.Error("zero is rounded")
	}
}
