package quant

import (
	"math/bits"

	"golang.org/x/sys/cpu"
)

// vectors says that errors are added four elements at a time: the same sums.
var vectors = cpu.X86.HasAVX2

//go:noescape
func addErrors(s *errorSums, codes *int16, x *float64, n int, step, offset, half float64) uint64

// vectorErrors adds the first elements as addErrors does, calls far for elements further than half from their code's value, and returns the
// number of elements done.
func (s *errorSums) vectorErrors(codes []int16, x []float64, step, offset, half float64, far func(i int)) int {
	const most = 64
	n := min(len(x), len(codes)) &^ 3
	if !vectors {
		return 0
	}
	for at := 0; at < n; at += most {
		k := min(most, n-at)
		mask := addErrors(s, &codes[at], &x[at], k, step, offset, half) >> (most - k)
		for ; mask != 0; mask &= mask - 1 {
			far(at + bits.TrailingZeros64(mask))
		}
	}
	return n
}
