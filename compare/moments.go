package compare

import "math"

// moments accumulates one side's statistics. Sums are of the distance to the first value, so that the standard
// deviation of numbers far from zero does not cancel.
type moments struct {
	n                   int64
	pivot               float64
	sum, squares        float64
	min, max            float64
	nan, posInf, negInf int64
}

func (m *moments) add(x float64) {
	if m.n == 0 {
		m.pivot, m.min, m.max = x, x, x
	}
	m.n++
	d := x - m.pivot
	m.sum += d
	m.squares += float64(d * d)
	if x < m.min {
		m.min = x
	}
	if x > m.max {
		m.max = x
	}
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
// are NaN.
type Stats struct {
	Min  Number `json:"min"`
	Max  Number `json:"max"`
	Mean Number `json:"mean"`
	Std  Number `json:"std"` // √(mean (x − Mean)²), the population's
	NaN  int64  `json:"nan,omitempty"`
	Inf  int64  `json:"inf,omitempty"`     // +Inf
	NInf int64  `json:"neg_inf,omitempty"` // −Inf
}

func (m *moments) stats() Stats {
	s := Stats{Min: nan, Max: nan, Mean: nan, Std: nan, NaN: m.nan, Inf: m.posInf, NInf: m.negInf}
	if m.n == 0 {
		return s
	}
	n := float64(m.n)
	mean := m.sum / n // from the pivot
	variance := max(m.squares/n-float64(mean*mean), 0)
	s.Min, s.Max, s.Mean, s.Std = Number(m.min), Number(m.max), Number(m.pivot+mean), Number(math.Sqrt(variance))
	return s
}

var nan = Number(math.NaN())
