// Package floats converts between the float formats of model tensors and Go's, one rounding at a time.
//
// Rounding is to nearest, ties to even, as torch rounds. A number beyond the largest finite one becomes an infinity,
// except in float8_e4m3fn, which has none: there it becomes the largest finite number, as in torch 2.15 (earlier
// versions made it NaN). A NaN stays a NaN, quiet, with its sign and as much of its payload as fits; torch itself keeps
// no payload and, in bfloat16, not always the sign, so nothing may depend on either. Signs of zero are kept.
package floats

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// BF16 rounds f to bfloat16 and returns its bits.
func BF16(f float32) uint16 { return uint16(math.Float32bits(RoundBF16(f)) >> 16) }

// FromBF16 returns the value of bfloat16 bits: every bfloat16 is a float32.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// RoundBF16 is FromBF16(BF16(f)).
func RoundBF16(f float32) float32 {
	b := math.Float32bits(f)
	if f != f {
		return math.Float32frombits((b | 1<<22) &^ 0xffff)
	}
	// Adding half a unit, less one where the last kept bit is even, carries into the kept bits exactly when the number
	// has to go up. A carry out of the significand raises the exponent, past the largest finite number to infinity.
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// Landmarks of float16 as float32 bits.
const (
	signBit    = 1 << 31
	f16Normal  = (127 - 14) << 23 // 2^−14, the smallest normal number
	f16Limit   = 0x477ff000       // 65520, halfway from the largest number to 2^16: it and all above round to infinity
	f32Inf     = 0xff << 23
	f16Half    = (127 - 1) << 23        // 0.5, whose unit in the last place is float16's smallest number, 2^−24
	f16Rebias  = uint32(127-15) << 23   // difference of the exponent biases
	f16Rounder = uint32(1)<<(23-11) - 1 // half a unit of float16, less one
)

// F16 rounds f to float16 and returns its bits.
func F16(f float32) uint16 {
	b := math.Float32bits(f)
	sign, a := uint16(b>>16&0x8000), b&^signBit
	switch {
	case a > f32Inf:
		return sign | 0x7e00 | uint16(a>>13&0x1ff)
	case a >= f16Limit:
		return sign | 0x7c00
	case a < f16Normal:
		return sign | uint16(math.Float32bits(math.Float32frombits(a)+0.5)-f16Half)
	default:
		return sign | uint16((a+f16Rounder+a>>13&1-f16Rebias)>>13)
	}
}

// FromF16 returns the value of float16 bits: every float16 is a float32.
func FromF16(h uint16) float32 {
	sign, a := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case a >= 0x7c00:
		return math.Float32frombits(sign | f32Inf | a<<13&(1<<23-1))
	case a < 0x0400:
		// The significand counts units of 2^−24; its product with the unit is exact.
		return math.Float32frombits(sign | math.Float32bits(float32(a)*0x1p-24))
	default:
		return math.Float32frombits(sign | (a<<13 + f16Rebias))
	}
}

// RoundF16 is FromF16(F16(f)).
func RoundF16(f float32) float32 {
	b := math.Float32bits(f)
	sign, a := b&signBit, b&^signBit
	switch {
	case a > f32Inf:
		return math.Float32frombits((b | 1<<22) &^ (1<<13 - 1))
	case a >= f16Limit:
		return math.Float32frombits(sign | f32Inf)
	case a < f16Normal:
		return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(a)+0.5-0.5))
	default:
		return math.Float32frombits(sign | (a+f16Rounder+a>>13&1)&^(1<<13-1))
	}
}

// Misread writes a number in one type and reads the bits as a number of another type of the same size. If both types are the same and have two bytes, these
// are exchanged.
func Misread(written, read hooks.DType, x float64) float64 {
	if written == hooks.F8E4M3 || written == hooks.F8E5M2 {
		bits := float8(written, float32(x))
		if read == hooks.F8E4M3 {
			return float64(FromF8E4M3(bits))
		}
		return float64(FromF8E5M2(bits))
	}
	bits := BF16(float32(x))
	if written == hooks.F16 {
		bits = F16(float32(x))
	}
	if written == read {
		bits = bits<<8 | bits>>8
	}
	if read == hooks.F16 {
		return float64(FromF16(bits))
	}
	return float64(FromBF16(bits))
}
