package floats_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"pgregory.net/rapid"
)

// A truncated number is one of the type, not further from zero, and less than one place of the type nearer to it.
func TestTruncatedNumbersAreTheNextTowardZero(t *testing.T) {
	types := []hooks.DType{hooks.F32, hooks.F16, hooks.BF16, hooks.F8E4M3, hooks.F8E5M2}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(types).Draw(t, "dtype")
		most := floats.Largest(d)
		x := rapid.Float64Range(-most, most).Draw(t, "x")
		y := floats.Truncate(d, x)
		if floats.Round(d, y) != y || math.Abs(y) > math.Abs(x) || x*y < 0 {
			t.Fatalf("%s: %g is cut off to %g", d, x, y)
		}
		if next := math.Abs(y) + floats.Spacing(d, y); next <= math.Abs(x) {
			t.Fatalf("%s: %g is cut off to %g, and %g is nearer", d, x, y, next)
		}
		if bits := math.Float32frombits(math.Float32bits(float32(x)) &^ 0xffff); d == hooks.BF16 && float64(float32(x)) == x && y != float64(bits) {
			t.Fatalf("%g is cut off to %g, its upper bits are %g", x, y, bits)
		}
	})
	for _, c := range []struct {
		d       hooks.DType
		x, want float64
	}{{hooks.F16, 1e6, 65504}, {hooks.BF16, -1.9999, -1.9921875}, {hooks.F8E4M3, 1e3, 448}, {hooks.F16, 0x1.8p-25, 0}} {
		if got := floats.Truncate(c.d, c.x); got != c.want {
			t.Errorf("%s: %g is cut off to %g, want %g", c.d, c.x, got, c.want)
		}
	}
}

// The bits of a number are read as those of another type, and misreading them the other way gives the number again.
func TestMisreadBits(t *testing.T) {
	for _, c := range []struct {
		written, read hooks.DType
		x, want       float64
	}{
		{hooks.BF16, hooks.F16, 1, 1.875},       // 0x3f80
		{hooks.F16, hooks.BF16, 1, 0.0078125},   // 0x3c00
		{hooks.BF16, hooks.BF16, 1, -0x3fp-133}, // 0x803f, which is subnormal
		{hooks.F16, hooks.F16, 1, 0x3cp-24},     // 0x003c
		{hooks.F8E4M3, hooks.F8E5M2, 1.5, 1},    // 0x3c
		{hooks.F8E5M2, hooks.F8E4M3, 3, 2.5},    // 0x42
	} {
		got := floats.Misread(c.written, c.read, c.x)
		if got != c.want {
			t.Errorf("%g of %s read as %s is %g, want %g", c.x, c.written, c.read, got, c.want)
		}
		if again := floats.Misread(c.read, c.written, got); again != c.x {
			t.Errorf("%g is misread as %g, and back as %g", c.x, got, again)
		}
	}
}
