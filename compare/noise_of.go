package compare

import (
	"errors"
	"fmt"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
)

// NewNoiseFloor makes a floor of the comparison of an emulated walk, the local side, with an exact one. Entries without a
// relative error, such as ids, have none. The error is that of a comparison which is not one of the whole two walks.
func NewNoiseFloor(r *Result) (*gate.NoiseFloor, error) {
	if len(r.Missing) > 0 || len(r.Inputs) == 0 {
		return nil, errors.New("a noise floor is measured between two walks of the same scope")
	}
	f := &gate.NoiseFloor{DType: r.Local.DType, Entries: map[string]gate.Noise{}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Class == gate.Shape || row.Name == "input_ids" && row.Verdict == Mismatch {
			return nil, fmt.Errorf("%s differs between the walks: %s", row.Key(), row.Detail)
		}
		m := row.Metrics
		if m == nil || !measure.Finite(float64(m.RelL2)) {
			continue
		}
		n := gate.Noise{RelL2: m.RelL2, Worst: map[string]measure.Number{}}
		for _, a := range m.Axes {
			n.Worst[a.Axis] = max(n.Worst[a.Axis], a.RelL2)
		}
		f.Entries[row.Key()] = n
	}
	return f, nil
}
