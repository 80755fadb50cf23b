package propose

import (
	"math"
	"strings"
)

// unitRows reports whether all rows of the tensors of a pattern have a root mean square of 1: a norm computes such rows and then multiplies them by its weight.
// Some engines dump both. The first of the two is no entry.
func (p *proposer) unitRows(t *template) (bool, error) {
	if t.unit != nil {
		return *t.unit, nil
	}
	unit := len(t.sources) > 0
	for i := range t.sources {
		x := plainTensor(&t.sources[i])
		n, err := p.local.of(x)
		if err != nil {
			return false, err
		}
		unit = unit && n != nil && len(x.shape) > 0 && unitIn(n.plain, x.shape[len(x.shape)-1])
	}
	t.unit = &unit
	return unit, nil
}

// leastRow is how many elements a row has at least whose root mean square says something.
const leastRow = 8

// unitIn reports whether rows of a width have a root mean square of 1, but for what the epsilon of a norm changes.
func unitIn(x []float64, width int) bool {
	if width < leastRow || len(x) < width {
		return false
	}
	for at := 0; at+width <= len(x); at += width {
		sum := 0.0
		for _, v := range x[at : at+width] {
			sum += v * v
		}
		if rms := math.Sqrt(sum / float64(width)); !(math.Abs(rms-1) < near) {
			return false
		}
	}
	return true
}

// isNorm reports whether the entries of a role are norms, which a factor in their operand does not change.
func isNorm(r *role) bool {
	for _, e := range r.layers {
		if e.Op == nil || !strings.Contains(e.Op.Kind(), "norm") {
			return false
		}
	}
	return len(r.layers) > 0
}
