package products

import "golang.org/x/sys/cpu"

// maxWidth is the most sums that a vector has.
const maxWidth = 8

// width is how many sums a vector has: 0 without vectors.
var width = widest()

func widest() int {
	switch {
	case cpu.X86.HasAVX512F:
		return 8
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return 4
	}
	return 0
}

//go:noescape
func tile512(out *[Tile * maxWidth]float64, w *float64, n int, x *float64)

//go:noescape
func fused512(out *[Tile * maxWidth]float64, w *float64, n int, x *float64)

//go:noescape
func tile256(out *[Tile * maxWidth]float64, w *float64, n int, x *float64)

//go:noescape
func fused256(out *[Tile * maxWidth]float64, w *float64, n int, x *float64)

//go:noescape
func square256(x *float64, n int)

// squareFirst replaces the first numbers by their squares, and returns how many.
func squareFirst(x []float64) int {
	n := len(x) &^ 15
	if width == 0 || n == 0 {
		return 0
	}
	square256(&x[0], n)
	return n
}

// tile multiplies eight rows of n numbers with a group of rows of as many. Exact: no product is rounded.
func tile(out *[Tile * maxWidth]float64, w *float64, n int, x *float64, exact bool) {
	switch {
	case width == 8 && exact:
		fused512(out, w, n, x)
	case width == 8:
		tile512(out, w, n, x)
	case exact:
		fused256(out, w, n, x)
	default:
		tile256(out, w, n, x)
	}
}

//go:noescape
func largest256(x *float64, n int) float64

// largestFirst is the largest of the absolute values of the first numbers, and how many these are.
func largestFirst(x []float64) (most float64, n int) {
	if n = len(x) &^ 15; width == 0 || n == 0 {
		return 0, 0
	}
	return largest256(&x[0], n), n
}
