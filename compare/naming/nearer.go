package naming

import (
	"math"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
)

const (
	// nearerBits is how many bits of proof a program needs that is nearer to the trace than the entry's own program. A search tries some thousand
	// mistakes, which is 13 bits.
	nearerBits = 20
	// mostRowBits limits the proof by one row: one rounding may move the whole row. The rounding of the root in a norm is an example.
	mostRowBits = 4
)

// nearer lists the remaining elements in rows where a program's values in float32 are nearer to the trace than the values of the entry's own program.
// The bounds of both programs may hold a row, since a bound is the largest error of any right code, and usual errors are much smaller. If
// one program is off by twice as much in a row, the row is one bit of proof for the other program. The list is empty without enough proof in all rows.
func (s *suspect) nearer(x, own []float64) (nearer []int) {
	width := 1
	if n := len(s.Y.Shape); n > 0 {
		width = max(s.Y.Shape[n-1], 1)
	}
	if s.own == nil || s.own.Model != hooks.F32 || len(x) != len(s.Y.Data) || len(own) != len(x) {
		return nil
	}
	proof := 0.0
	bits := make([]float64, len(x)/width)
	for row := range bits {
		off := s.offBy(own, row*width, width) / s.offBy(x, row*width, width)
		bits[row] = max(-mostRowBits, min(mostRowBits, math.Log2(off)))
		proof += bits[row]
	}
	if !(proof >= nearerBits) {
		return nil
	}
	for _, i := range s.Left {
		if bits[i/width] >= 1 {
			nearer = append(nearer, i)
		}
	}
	return nearer
}

// offBy is the root mean square of the errors of a row in distances between two numbers of the trace's dtype; at least 1.
func (s *suspect) offBy(x []float64, from, width int) float64 {
	sum := 0.0
	for i := from; i < from+width; i++ {
		d := (x[i] - s.Y.Data[i]) / isolate.LastPlace(s.DType, s.Y.Data[i])
		sum += d * d
	}
	return math.Sqrt(max(1, sum/float64(width)))
}
