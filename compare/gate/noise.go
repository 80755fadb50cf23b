package gate

import (
	"encoding/json"
	"fmt"

	"github.com/tracediff/tracediff/compare/measure"
)

// NoiseFloor is, by entry, the accumulated error of the dtype's rounding for one prompt: the walk with every rounding point, against the walk
// without any. No healthy port in the dtype is closer to the reference, unless it rounds in the same places.
type NoiseFloor struct {
	DType   string           `json:"dtype"`
	Entries map[string]Noise `json:"entries"` // by key in a trace
}

// Noise is the floor of one entry: the errors that the gate of a comparison limits, see measure.Metrics.
type Noise struct {
	RelL2 measure.Number            `json:"rel_l2"`
	Worst map[string]measure.Number `json:"worst,omitempty"` // of the worst slice, by the role of the axis
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
		if !(n.RelL2 >= 0) || !measure.Finite(float64(n.RelL2)) {
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
