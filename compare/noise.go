package compare

import (
	"encoding/json"
	"errors"
	"fmt"
)

// NoiseFloor is, entry by entry, the accumulated error that the dtype's rounding alone causes for one prompt: the walk
// with every rounding point, measured against the walk with none. No healthy port of that dtype is closer to the
// reference than this allows, but one that rounds in the same places.
type NoiseFloor struct {
	DType   string           `json:"dtype"`
	Entries map[string]Noise `json:"entries"` // by key in a trace
}

// Noise is the floor of one entry: the errors that the gate of a comparison limits, see [Metrics].
type Noise struct {
	RelL2 Number            `json:"rel_l2"`
	Worst map[string]Number `json:"worst,omitempty"` // of the worst slice, by the role of the axis
}

// NewNoiseFloor makes a floor of the comparison of an emulated walk, the local side, with an exact one. Entries without a
// relative error, such as ids, have none. The error is that of a comparison which is not one of the whole two walks.
func NewNoiseFloor(r *Result) (*NoiseFloor, error) {
	if len(r.Missing) > 0 || len(r.Inputs) == 0 {
		return nil, errors.New("a noise floor is measured between two walks of the same scope")
	}
	f := &NoiseFloor{DType: r.Local.DType, Entries: map[string]Noise{}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Class == Shape || row.Name == "input_ids" && row.Verdict == Mismatch {
			return nil, fmt.Errorf("%s differs between the walks: %s", row.Key(), row.Detail)
		}
		m := row.Metrics
		if m == nil || !finite(float64(m.RelL2)) {
			continue
		}
		n := Noise{RelL2: m.RelL2, Worst: map[string]Number{}}
		for _, a := range m.Axes {
			n.Worst[a.Axis] = max(n.Worst[a.Axis], a.RelL2)
		}
		f.Entries[row.Key()] = n
	}
	return f, nil
}

// maxFloor bounds a floor's file: some 2000 entries a pass at 200 bytes, over a few hundred passes.
const maxFloor = 1 << 28

// ParseNoiseFloor reads the JSON of a floor.
func ParseNoiseFloor(data []byte) (*NoiseFloor, error) {
	if len(data) > maxFloor {
		return nil, fmt.Errorf("a noise floor of %d bytes", len(data))
	}
	var f NoiseFloor
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("reading a noise floor: %w", err)
	}
	for key, n := range f.Entries {
		if !(n.RelL2 >= 0) || !finite(float64(n.RelL2)) {
			return nil, fmt.Errorf("reading a noise floor: %.80q has the error %v", key, n.RelL2)
		}
		for axis, err := range n.Worst {
			if !(err >= 0) {
				return nil, fmt.Errorf("reading a noise floor: the worst %.20q of %.80q has the error %v", axis, key, err)
			}
		}
	}
	return &f, nil
}
