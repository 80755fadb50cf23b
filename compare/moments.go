package compare

import "math"

// moments are one side's statistics. They are made strip by strip, around a number near the strip's mean, and merged by the
// formula of Chan, Golub and LeVeque (1979): no difference of large sums is taken, so the standard deviation of numbers
// far from zero keeps its digits. For the same reason the mean is not one number, which far from zero has few digits left
// for the distance to another mean.
type moments struct {
	n                   int64
	pivot, offset       float64 // the mean is their sum
	squares             float64 // Σ(x − mean)²
	min, max            float64
	nan, posInf, negInf int64
}

// merge takes in the moments of the elements that come next.
func (m *moments) merge(o *moments) {
	m.nan += o.nan
	m.posInf += o.posInf
	m.negInf += o.negInf
	switch {
	case o.n == 0:
	case m.n == 0:
		m.n, m.pivot, m.offset, m.squares, m.min, m.max = o.n, o.pivot, o.offset, o.squares, o.min, o.max
	default:
		share := float64(o.n) / float64(m.n+o.n)
		d := (o.pivot - m.pivot) + (o.offset - m.offset)
		m.offset += float64(d * share)
		m.squares += o.squares + float64(float64(d*d)*float64(float64(m.n)*share))
		m.min, m.max = min(m.min, o.min), max(m.max, o.max)
		m.n += o.n
	}
}

// momentsOf returns those of a strip without its holes, which are 0; it overwrites them. v is the survey of the others.
func momentsOf(x []float64, holes []int, v survey) moments {
	count := len(x) - len(holes)
	if count == 0 {
		return moments{}
	}
	n := float64(count)
	m := moments{n: int64(count), pivot: v.total / n, min: v.least, max: v.most}
	for _, i := range holes {
		x[i] = m.pivot // at no distance
	}
	sum, squares := deviations(x, m.pivot)
	m.offset = sum / n
	m.squares = max(squares-float64(sum*m.offset), 0)
	return m
}

// special counts x if it is NaN or infinite.
func (m *moments) special(x float64) {
	switch {
	case x != x:
		m.nan++
	case math.IsInf(x, 1):
		m.posInf++
	case math.IsInf(x, -1):
		m.negInf++
	}
}

// Stats describes the compared elements of one side: the finite ones that are not masked. Without any, the four numbers
// are NaN. Min and Max are those of the elements, a zero being +0 whatever its sign.
//
// Mean is Σx / n and Std is √(Σ(x − Mean)² / n), the population's. Both keep their digits wherever the numbers lie: at a
// mean of 1e5 and a standard deviation of 1 the error of Std is below 1e−14, where Σx²/n − Mean² in float64 has 1e−6.
type Stats struct {
	Min  Number `json:"min"`
	Max  Number `json:"max"`
	Mean Number `json:"mean"`
	Std  Number `json:"std"`
	NaN  int64  `json:"nan,omitempty"`
	Inf  int64  `json:"inf,omitempty"`     // +Inf
	NInf int64  `json:"neg_inf,omitempty"` // −Inf
}

// stats are those of elements of which mean and squares were taken times scale.
func (m *moments) stats(scale float64) Stats {
	s := Stats{Min: nan, Max: nan, Mean: nan, Std: nan, NaN: m.nan, Inf: m.posInf, NInf: m.negInf}
	switch {
	case m.n == 0:
	case m.min == m.max: // of equal numbers the sum may be rounded, and so miss that they are equal
		s.Min, s.Max, s.Mean, s.Std = Number(m.min+0), Number(m.max+0), Number(m.min+0), 0
	default:
		// −0 + 0 is +0: the sign of a zero depends on which of several came first
		s.Min, s.Max, s.Mean, s.Std = Number(m.min+0), Number(m.max+0), Number((m.pivot+m.offset)/scale), Number(math.Sqrt(m.squares/float64(m.n))/scale)
	}
	return s
}

var nan = Number(math.NaN())
