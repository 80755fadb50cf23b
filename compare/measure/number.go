package measure

import (
	"encoding/json"
	"math"
)

// Number is a float64 in JSON, which has no NaN and no infinities: they become the strings "NaN", "Infinity" and "-Infinity". NaN is an
// undefined quantity, such as a cosine with zero.
type Number float64

// MarshalJSON writes a number, or one of the three strings.
func (n Number) MarshalJSON() ([]byte, error) {
	x := float64(n)
	switch {
	case math.IsNaN(x):
		return []byte(`"NaN"`), nil
	case math.IsInf(x, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(x, -1):
		return []byte(`"-Infinity"`), nil
	}
	return json.Marshal(x)
}

// UnmarshalJSON reads what [Number.MarshalJSON] writes.
func (n *Number) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"NaN"`:
		*n = Number(math.NaN())
	case `"Infinity"`:
		*n = Number(math.Inf(1))
	case `"-Infinity"`:
		*n = Number(math.Inf(-1))
	default:
		return json.Unmarshal(data, (*float64)(n))
	}
	return nil
}
