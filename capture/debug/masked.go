package debug

import (
	"math"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// leastScore is the lowest mask or score that does not count as masked: ports mask with −1e9, −1e30 or the lowest number
// of the dtype, and no model has such scores.
const leastScore = -1e8

// floor is the number at or below which an element of a tensor counts as masked. For masks and scores, floor is −1e8, or half
// of the dtype's lowest number if nearer to zero. For other tensors floor is −Inf, and no element is masked.
func floor(name string, d hooks.DType) float64 {
	name = strings.ToLower(name)
	if !d.Float() || !strings.Contains(name, "mask") && !strings.Contains(name, "scores") {
		return math.Inf(-1)
	}
	return max(leastScore, -floats.Largest(d)/2)
}

// statistics are the statistics of a tensor without its masked elements.
type statistics struct {
	lanes.Moments
	masked int64 // the number of masked elements that are finite; minus infinity has a count in Moments
}

// statisticsOf takes the statistics of a tensor. A tensor that is not well-formed is an error.
func statisticsOf(name string, t hooks.Tensor) (m statistics, err error) {
	least := floor(name, t.DType)
	if math.IsInf(least, -1) {
		err = m.Tensor(t)
		return m, err
	}
	if err := t.Check(); err != nil {
		return m, err
	}
	var strip [lanes.Strip]float64
	size := t.DType.Size()
	for data := t.Data; len(data) > 0; {
		x := strip[:min(lanes.Strip, len(data)/size)]
		if err := floats.Decode(x, t.DType, data); err != nil {
			return m, err
		}
		data = data[len(x)*size:]
		kept := x[:0]
		for _, y := range x {
			if y <= least && !math.IsInf(y, -1) {
				m.masked++
			} else {
				kept = append(kept, y)
			}
		}
		m.Add(kept)
	}
	return m, nil
}

// certain is the mean of a tensor of finite numbers, and NaN for other tensors.
func certain(m *lanes.Moments) float64 {
	if m.NaN+m.PosInf+m.NegInf > 0 {
		return math.NaN()
	}
	return m.Summary(1).Mean
}
