package floats

import "golang.org/x/sys/cpu"

// vectors says that numbers are widened several at a time: the same numbers.
var vectors = cpu.X86.HasAVX2

//go:noescape
func widenBF16(dst *float64, src *byte, n int)

//go:noescape
func widenF32(dst *float64, src *byte, n int)

// atOnce is what numbers are widened in multiples of.
const atOnce = 16

// firstBF16 widens the first numbers, and returns how many. src has all of dst.
func firstBF16(dst []float64, src []byte) int {
	n := len(dst) &^ (atOnce - 1)
	if !vectors || n == 0 {
		return 0
	}
	widenBF16(&dst[0], &src[:2*n][0], n)
	return n
}

// firstF32 is firstBF16 for float32.
func firstF32(dst []float64, src []byte) int {
	n := len(dst) &^ (atOnce - 1)
	if !vectors || n == 0 {
		return 0
	}
	widenF32(&dst[0], &src[:4*n][0], n)
	return n
}
