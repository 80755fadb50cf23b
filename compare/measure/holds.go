package measure

import (
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// holdsAtOnce is how many elements [Holds] reads at a time: most tensors that say no do so in the first of them.
const holdsAtOnce = 1 << 16

// Holds reports whether every element of a tensor of floats is a number of a float type, so that storing it in that type would
// lose nothing. NaN and infinities are numbers of every type. An empty tensor holds anything. The error is that of reading.
func Holds(t *capture.Trace, r capture.Record, d hooks.DType) (bool, error) {
	if d == r.DType || floats.Precision(d) >= floats.Precision(r.DType) && d != hooks.F16 {
		return true, nil
	}
	lost, err := some(t, r, func(x float64) bool { return x == x && floats.Round(d, x) != x })
	return !lost && err == nil, err
}

// Tells reports whether a tensor of floats has a finite number other than 0: zeros, NaN and infinities are numbers of every float type. The error is that of
// reading.
func Tells(t *capture.Trace, r capture.Record) (bool, error) {
	return some(t, r, func(x float64) bool { return x != 0 && x-x == 0 })
}

// some reports whether an element is of a kind. It reads no further than the first one.
func some(t *capture.Trace, r capture.Record, is func(x float64) bool) (bool, error) {
	v := Whole(t, r)
	n := Elements(r.Shape)
	values := make([]float64, min(n, holdsAtOnce))
	for at := 0; at < n; at += len(values) {
		values = values[:min(len(values), n-at)]
		if err := v.Values(values, at); err != nil {
			return false, err
		}
		if slices.ContainsFunc(values, is) {
			return true, nil
		}
	}
	return false, nil
}
