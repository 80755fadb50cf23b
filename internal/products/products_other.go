//go:build !amd64

package products

const maxWidth = 1

// width is 0: sums are taken without vectors here.
var width = 0

func tile(*[Tile * maxWidth]float64, *float64, int, *float64, bool) {}

func squareFirst([]float64) int { return 0 }

func largestFirst([]float64) (most float64, n int) { return 0, 0 }
