package floats

import (
	"encoding/binary"

	"github.com/tracediff/tracediff/hooks"
)

// Steps compares n pairs of numbers of the float type d, both little-endian, and returns how many differ and the most
// steps of [Distance] between two of them. −0 equals +0. A NaN is taken for the number that its bits would be beyond
// infinity: leave NaNs out. Both sides have at least n elements of d, a float type; otherwise Steps panics.
//
// It is Distance on the bits themselves: below the sign they count the numbers of any IEEE format upwards from zero.
func Steps(d hooks.DType, l, r []byte, n int) (unequal int64, most uint64) {
	switch d {
	case hooks.F64:
		return steps64(l[:8*n], r[:8*n])
	case hooks.F32:
		return steps32(l[:4*n], r[:4*n])
	case hooks.F16, hooks.BF16:
		return steps16(l[:2*n], r[:2*n])
	case hooks.F8E4M3, hooks.F8E5M2:
		return steps8(l[:n], r[:n])
	}
	panic("floats: steps of " + d.String() + ", which is not a float type")
}

func steps64(l, r []byte) (unequal int64, most uint64) {
	for len(l) >= 8 && len(r) >= 8 {
		i, j := place64(binary.LittleEndian.Uint64(l)), place64(binary.LittleEndian.Uint64(r))
		if i < j {
			i, j = j, i
		}
		if i != j {
			unequal++
			most = max(most, uint64(i)-uint64(j))
		}
		l, r = l[8:], r[8:]
	}
	return unequal, most
}

// place64 is the place of a number among the float64s: 0 for both zeros. The magnitude of a negative one is negated, which
// is to flip all its bits and add one, without a branch.
func place64(bits uint64) int64 {
	sign := int64(bits) >> 63
	return (int64(bits&^(1<<63)) ^ sign) - sign
}

func steps32(l, r []byte) (unequal int64, most uint64) {
	var far int64
	for len(l) >= 4 && len(r) >= 4 {
		d := place32(binary.LittleEndian.Uint32(l)) - place32(binary.LittleEndian.Uint32(r))
		unequal, far = unequal+different(d), max(far, d, -d)
		l, r = l[4:], r[4:]
	}
	return unequal, uint64(far)
}

func place32(bits uint32) int64 {
	sign := int64(int32(bits) >> 31)
	return (int64(bits&^(1<<31)) ^ sign) - sign
}

func steps16(l, r []byte) (unequal int64, most uint64) {
	var far int64
	for len(l) >= 2 && len(r) >= 2 {
		d := place16(binary.LittleEndian.Uint16(l)) - place16(binary.LittleEndian.Uint16(r))
		unequal, far = unequal+different(d), max(far, d, -d)
		l, r = l[2:], r[2:]
	}
	return unequal, uint64(far)
}

func place16(bits uint16) int64 {
	sign := int64(int16(bits) >> 15)
	return (int64(bits&^(1<<15)) ^ sign) - sign
}

func steps8(l, r []byte) (unequal int64, most uint64) {
	var far int64
	r = r[:len(l)]
	for i, b := range l {
		d := place16(uint16(b)<<8)>>8 - place16(uint16(r[i])<<8)>>8
		unequal, far = unequal+different(d), max(far, d, -d)
	}
	return unequal, uint64(far)
}

// different is 1 for a number that is not 0, without a branch: of two close sides half the elements differ, in no order
// that a processor could foresee.
func different(d int64) int64 { return int64(uint64(d|-d) >> 63) }
