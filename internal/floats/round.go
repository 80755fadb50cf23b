package floats

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// format is a binary float format narrower than float64.
type format struct {
	precision int     // bits of the significand, the hidden one included
	minExp    int     // exponent of the smallest normal number
	max       float64 // the largest finite number
	saturates bool    // numbers beyond max become max: the format has no infinity
}

// smallest is the smallest normal number of f, 2^minExp.
func (f *format) smallest() float64 { return math.Float64frombits(uint64(f.minExp+1023) << 52) }

// formats has the narrow formats by dtype; precision is 0 for other dtypes.
var formats = [...]format{
	hooks.F32:    {24, -126, math.MaxFloat32, false},
	hooks.F16:    {11, -14, 65504, false},
	hooks.BF16:   {8, -126, 0x1.fep127, false},
	hooks.F8E4M3: {4, -6, 448, true},
	hooks.F8E5M2: {3, -14, 57344, false},
	hooks.Bool:   {}, // the last dtype: every dtype is an index
}

// Precision returns the bits of d's significand, the hidden one included, and 0 for a type that is not a float.
func Precision(d hooks.DType) int {
	if d == hooks.F64 {
		return 53
	}
	if !d.Float() {
		return 0
	}
	return formats[d].precision
}

// MinExponent returns the exponent of the smallest normal number of a float type narrower than float64.
func MinExponent(d hooks.DType) int { return formats[d].minExp }

// Largest returns the largest finite number of a float type.
func Largest(d hooks.DType) float64 {
	if d == hooks.F64 {
		return math.MaxFloat64
	}
	return formats[d].max
}

// Coarser returns the one of two float types whose significand is shorter, a when they are the same.
func Coarser(a, b hooks.DType) hooks.DType {
	if Precision(b) < Precision(a) {
		return b
	}
	return a
}

// Unit returns the unit roundoff of a float type, half the distance of 1 to the next larger number: 2^−precision.
func Unit(d hooks.DType) float64 { return math.Ldexp(1, -Precision(d)) }

// RoundingError is how far rounding a number to d moves it at most, where neither the number nor what it becomes is larger than x: Unit(d)·x, and
// half the smallest positive number of d where x is below its normal numbers, which are equally far apart from there to 0. d is a float type,
// and x not negative; rounding to an infinity is no part of it.
func RoundingError(d hooks.DType, x float64) float64 { return Unit(d) * max(x, SmallestNormal(d)) }

// SmallestNormal returns the smallest normal number of a float type.
func SmallestNormal(d hooks.DType) float64 {
	if d == hooks.F64 {
		return 0x1p-1022
	}
	return formats[d].smallest()
}

// Flushed returns the magnitude below which an engine may take a number of d for zero, in place of it or of what it is rounded from: vector units,
// GPUs and libraries do so with the subnormal numbers of float32, and with those of bfloat16, which they compute in float32. Of other types it
// is 0: none does.
func Flushed(d hooks.DType) float64 {
	if d == hooks.F32 || d == hooks.BF16 {
		return SmallestNormal(d)
	}
	return 0
}

// Round returns the number of d that is nearest to x, rounding once: from a float64 to bfloat16, not by way of
// float32. An infinity becomes the largest number where d has none. d is a float type; otherwise Round panics.
func Round(d hooks.DType, x float64) float64 {
	if d == hooks.F64 {
		return x
	}
	if !d.Float() {
		panic(fmt.Sprintf("floats: rounding to %s, which is not a float type", d))
	}
	if d == hooks.F32 {
		return float64(float32(x))
	}
	f := &formats[d]
	if a := math.Abs(x); a >= f.smallest() && a <= f.max {
		// Nearly every number: adding half a unit, less one where the last kept bit is even, carries into the kept bits exactly
		// when the number has to go up.
		drop := (53 - f.precision) & 63 // & tells the compiler that no shift is too wide
		b := math.Float64bits(x)
		return math.Float64frombits((b + (1<<(drop-1) - 1 + b>>drop&1)) &^ (1<<drop - 1))
	} else if a < f.smallest() {
		// Subnormal numbers of d are equally far apart. Numbers of float64 near large have that distance, so the sum is rounded to it.
		large := math.Float64frombits(uint64(f.minExp-f.precision+1+52+1023)<<52 | 1<<51)
		return math.Copysign((x+large)-large, x)
	}
	if x != x {
		return x
	}
	if !math.IsInf(x, 0) {
		_, e := math.Frexp(x) // |x| in [2^(e−1), 2^e)
		// x in units of the last place that d has here: scaling by a power of two is exact, and so is undoing it.
		ulp := math.Ldexp(1, max(e-1, f.minExp)-f.precision+1)
		x = math.RoundToEven(x/ulp) * ulp
	}
	switch {
	case math.Abs(x) <= f.max:
		return x
	case f.saturates:
		return math.Copysign(f.max, x)
	default:
		return math.Copysign(math.Inf(1), x)
	}
}

// RoundAll rounds each of some numbers to d, in place, as Round does.
func RoundAll(d hooks.DType, x []float64) {
	if d == hooks.F64 || !d.Float() {
		for i, v := range x {
			x[i] = Round(d, v)
		}
		return
	}
	f := &formats[d]
	least, most, drop := f.smallest(), f.max, (53-f.precision)&63
	half, mask := uint64(1)<<(drop-1)-1, uint64(1)<<drop-1
	for i, v := range x {
		if a := math.Abs(v); a >= least && a <= most { // see Round
			b := math.Float64bits(v)
			x[i] = math.Float64frombits((b + half + b>>drop&1) &^ mask)
			continue
		}
		x[i] = Round(d, v)
	}
}

// Ordinal rounds x to the float type d and returns the place of the result among the numbers of d: 0 for both zeros,
// 1 for the smallest positive number, −1 for its negative, and so on to the infinities. x is not NaN.
func Ordinal(d hooks.DType, x float64) int64 {
	single := float32(math.Abs(x))
	switch d {
	case hooks.F64:
		return signed(math.Float64bits(x)&^(1<<63), x)
	case hooks.F32:
		return signed(uint64(math.Float32bits(single)), x)
	case hooks.BF16:
		// The usual case, ten times as fast as the general one below: by way of float32 x is still rounded once.
		if float64(single) == math.Abs(x) {
			return signed(uint64(BF16(single)), x)
		}
	}
	f := formats[d]
	a := math.Abs(Round(d, x))
	switch {
	case a == 0:
		return 0
	case a > f.max: // infinity comes after the largest number
		return signed(f.place(f.max)+1, x)
	default:
		return signed(f.place(a), x)
	}
}

// place counts the numbers of f in (0, a], for a positive finite number a of f: every binade above the subnormals has
// 2^(precision−1) of them, and so have the subnormals and zero together.
func (f format) place(a float64) uint64 {
	if a >= f.smallest() { // the bits that f keeps count them, too, from another zero
		return math.Float64bits(a)>>(53-f.precision) - uint64(f.minExp+1022)<<(f.precision-1)
	}
	_, e := math.Frexp(a)
	binade := max(e-1, f.minExp)
	units := uint64(math.Ldexp(a, f.precision-1-binade)) // the significand as an integer
	return uint64(binade-f.minExp)<<(f.precision-1) + units
}

func signed(magnitude uint64, x float64) int64 {
	if math.Signbit(x) {
		return -int64(magnitude)
	}
	return int64(magnitude)
}

// Distance returns how many steps of d lie between a and b, each rounded to d first: 0 for equal numbers and for
// −0 and +0, 1 for neighbours, 1 from the largest finite number to infinity. Neither is NaN.
func Distance(d hooks.DType, a, b float64) uint64 {
	i, j := Ordinal(d, a), Ordinal(d, b)
	if i < j {
		i, j = j, i
	}
	return uint64(i) - uint64(j) // of opposite signs the difference may exceed an int64; modulo 2^64 it is right
}

// Truncate is the number of d nearest to x that is not further from zero: the low bits are cut off, and not rounded.
func Truncate(d hooks.DType, x float64) float64 {
	y := Round(d, x)
	if y == x || y != y {
		return y
	}
	if math.IsInf(y, 0) {
		return math.Copysign(Largest(d), x)
	}
	if math.Abs(y) > math.Abs(x) {
		y -= math.Copysign(Spacing(d, y), y)
		if math.Abs(y) < math.Abs(x) { // below a power of two the numbers are twice as close
			if z := Round(d, y+math.Copysign(Spacing(d, x), x)); math.Abs(z) <= math.Abs(x) {
				y = z
			}
		}
	}
	return y
}

// Spacing is the distance of the numbers of d around x: that of the last place of |x|, and below the normal numbers that of the smallest.
func Spacing(d hooks.DType, x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || x != x {
		if d == hooks.F64 {
			return math.SmallestNonzeroFloat64
		}
		return math.Ldexp(1, MinExponent(d)-Precision(d)+1)
	}
	_, e := math.Frexp(x)
	e--
	if d == hooks.F64 {
		return math.Ldexp(1, max(e, -1022)-52)
	}
	return math.Ldexp(1, max(e, MinExponent(d))-Precision(d)+1)
}
