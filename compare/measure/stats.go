package measure

import (
	"math"

	"github.com/tracediff/tracediff/internal/lanes"
)

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

// StatsOf are the statistics of elements whose mean and squares were taken times scale; scale is 1 without a factor.
func StatsOf(m *lanes.Moments, scale float64) Stats {
	s := m.Summary(scale)
	return Stats{
		Min: Number(s.Min), Max: Number(s.Max), Mean: Number(s.Mean), Std: Number(s.Std),
		NaN: m.NaN, Inf: m.PosInf, NInf: m.NegInf,
	}
}

var Nan = Number(math.NaN())
