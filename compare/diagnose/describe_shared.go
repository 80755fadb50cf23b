package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// indexIn is the element of a smaller shape that is broadcast to element i of a shape. Axes are aligned at the last axis. It is −1 if the shapes do not
// fit.
func indexIn(i int, shape, small []int) int {
	at, stride := 0, 1
	for k := range small {
		n := small[len(small)-1-k]
		if k >= len(shape) {
			if n != 1 {
				return -1
			}
			continue
		}
		size := shape[len(shape)-1-k]
		switch n {
		case size:
			at += i % size * stride
		case 1:
		default:
			return -1
		}
		i, stride = i/size, stride*n
	}
	return at
}

// stretched broadcasts an operand to the shape of a step; nil if the shapes do not fit.
func stretched(x []float64, from, to []int) []float64 {
	n := program.Size(to)
	if len(x) == n {
		return x
	}
	out := make([]float64, n)
	for i := range out {
		k := indexIn(i, to, from)
		if k < 0 || k >= len(x) {
			return nil
		}
		out[i] = x[k]
	}
	return out
}

// shared is the wanted value of an operand that is broadcast: the number on which all copies of an element agree. It is NaN if the copies do not agree.
func shared(want, half []float64, from, to []int) (x, e []float64) {
	n := program.Size(to)
	if n == len(want) {
		return want, half
	}
	low, high := make([]float64, n), make([]float64, n)
	for k := range low {
		low[k], high[k] = math.Inf(-1), math.Inf(1)
	}
	for i, y := range want {
		k := indexIn(i, from, to)
		if k < 0 || k >= n {
			return nil, nil
		}
		switch e := half[i]; {
		case y-y != 0 && !math.IsInf(e, 1): // nothing gives the element
			low[k], high[k] = math.MaxFloat64, -math.MaxFloat64
		case e-e == 0: // an element with an infinite error says nothing
			low[k], high[k] = max(low[k], y-2*e), min(high[k], y+2*e)
		}
	}
	for k := range low {
		switch {
		case math.IsInf(low[k], 0) || math.IsInf(high[k], 0):
			low[k], high[k] = 0, math.Inf(1)
		case low[k] > high[k]:
			low[k], high[k] = math.NaN(), math.NaN()
		default:
			low[k], high[k] = low[k]/2+high[k]/2, high[k]/2-low[k]/2
		}
	}
	return low, high
}
