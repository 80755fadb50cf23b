package floats

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// F8E4M3 rounds f to float8_e4m3fn and returns its bits. Numbers beyond 448, and infinities, become ±448.
func F8E4M3(f float32) uint8 { return float8(hooks.F8E4M3, f) }

// F8E5M2 rounds f to float8_e5m2 and returns its bits.
func F8E5M2(f float32) uint8 { return float8(hooks.F8E5M2, f) }

// float8 returns the bits of f in an eight-bit format: below the sign they count its numbers upwards from zero, and
// infinity, where there is one, comes next after the largest number. 0x7f is a NaN of both formats.
func float8(d hooks.DType, f float32) uint8 {
	var sign uint8
	if math.Signbit(float64(f)) {
		sign = 0x80
	}
	if f != f {
		return sign | 0x7f
	}
	return sign | uint8(Ordinal(d, math.Abs(float64(f))))
}

// FromF8E4M3 returns the value of float8_e4m3fn bits.
func FromF8E4M3(b uint8) float32 {
	if b&0x7f == 0x7f {
		return math.Float32frombits(uint32(b&0x80)<<24 | 0x7fc00000)
	}
	return fromFloat8(b, 3, 7)
}

// FromF8E5M2 returns the value of float8_e5m2 bits: they are the upper half of a float16.
func FromF8E5M2(b uint8) float32 { return FromF16(uint16(b) << 8) }

// fromFloat8 decodes finite bits with the given number of fraction bits and exponent bias.
func fromFloat8(b uint8, fraction, bias int) float32 {
	exp, frac := int(b&0x7f)>>fraction, int(b)&(1<<fraction-1)
	v := math.Ldexp(float64(1<<fraction+frac), exp-bias-fraction)
	if exp == 0 {
		v = math.Ldexp(float64(frac), 1-bias-fraction)
	}
	if b&0x80 != 0 {
		v = -v
	}
	return float32(v)
}
