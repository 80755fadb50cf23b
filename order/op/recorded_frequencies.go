package op

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/functions"
)

// RecordedFrequencies are the frequencies whose float32 values a recorded program has as constants. Those of a table without a scaling, or
// with a linear one, are known by their values; of any others the errors of the ways are those of a power whose exponent has to give the
// value. nil for constants that are no frequencies.
func RecordedFrequencies(values []float64) *program.Frequencies {
	n := len(values)
	if n < 2 || !slices.ContainsFunc(values, func(v float64) bool { return v > 0 && v < 1 }) {
		return nil
	}
	for _, o := range TablesOf(values) {
		if slices.Equal(o.frequencies(), values) {
			return o.made()
		}
	}
	return program.Recorded(values, func(way uint8, j int, x float64) float64 {
		turns := float64(j)
		ofStep := turns*functions.PowerOfBase + x
		switch way {
		case program.WayPower:
			return functions.PowerOnGPU + 1 + 2*x
		case program.WayExp:
			return functions.Exp + (functions.LogOfBase+2)*x
		case program.WayRunning:
			return ofStep + turns
		case program.WayPowers:
			return ofStep + functions.PowerOnGPU + turns*functions.FastLog2*math.Ln2 + x
		}
		return functions.PowerOfBase + 1
	})
}

// TablesOf are the tables without a scaling, or with a linear one, that may have these frequencies: by the first two, with a base of four digits
// or of all.
func TablesOf(values []float64) []Rotary {
	if len(values) < 2 || !(values[0] > 0) || !(values[1] > 0) {
		return nil
	}
	n := len(values)
	factor := 1 / values[0]
	theta := math.Pow(values[0]/values[1], float64(n))
	if !(theta > 0 && theta < 1e12) {
		return nil
	}
	digits := math.Pow(10, math.Floor(math.Log10(theta))-3)
	var all []Rotary
	for _, x := range []float64{math.Round(theta/digits) * digits, theta} {
		o := Rotary{Theta: x, Dim: 2 * n, Scaling: "default"}
		if factor != 1 {
			o.Scaling, o.Factor = "linear", factor
		}
		all = append(all, o)
	}
	return all
}
