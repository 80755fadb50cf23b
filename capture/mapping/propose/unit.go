package propose

import (
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
)

// unitRows reports whether all rows of the tensors of a pattern have a root mean square of 1: a norm computes such rows and then multiplies them by its weight.
// Some engines dump both. The first of the two is no entry.
func (p *proposer) unitRows(t *template) (bool, error) {
	if t.unit != nil {
		return *t.unit, nil
	}
	unit := len(t.Sources) > 0
	for i := range t.Sources {
		x := tensors.OfSource(&t.Sources[i])
		n, err := p.values.Dump.Numbers(x)
		if err != nil {
			return false, err
		}
		unit = unit && n != nil && len(x.Shape) > 0 && tensors.UnitRows(n.Plain, x.Shape[len(x.Shape)-1])
	}
	t.unit = &unit
	return unit, nil
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
