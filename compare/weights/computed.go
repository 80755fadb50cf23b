package weights

import (
	"errors"
	"math"
	"strings"
)

// errOther is said of a tensor that is named like one that is computed from the configuration, and has other values.
var errOther = errors.New("it has other values")

// computed reports a tensor that has what a checkpoint need not have, as its name says: a causal mask, positions, frequencies. A mask and
// positions are checked element by element. Of frequencies, which depend on a configuration that is not known here, and of their cosines
// and sines, it is checked that they may be some. errOther is returned for values that are none; others are errors of reading.
func computed(t *Tensor) error {
	if t.check() != nil {
		return errOther
	}
	name := t.key()
	n := t.elements()
	size := squeezed(t.Shape)
	var right func(i int, x float64) bool
	last, first := math.Inf(1), 0.0
	switch {
	case strings.HasSuffix(name, "masked_bias"):
		right = func(_ int, x float64) bool { return x <= -1e4 }
	case strings.HasSuffix(name, ".bias"):
		if len(size) == 0 { // one element
			size = []int{1, 1}
		}
		if len(size) != 2 || size[0] != size[1] {
			return errOther
		}
		right = func(i int, x float64) bool { return same(x, oneIf(i%size[1] <= i/size[1])) }
	case strings.HasSuffix(name, "position_ids"):
		right = func(i int, x float64) bool { return same(x, float64(i)) }
	case strings.HasSuffix(name, "_cached"):
		right = func(_ int, x float64) bool { first = max(first, math.Abs(x)); return math.Abs(x) <= 4 } // 1, and the factor of some extensions
	case strings.HasSuffix(name, "inv_freq"):
		right = func(_ int, x float64) bool { // the last may be zero: these do not turn
			ok := x >= 0 && x <= last && x <= 1
			last, first = x, max(first, x)
			return ok
		}
	default: // rope_freqs.weight: divisors of frequencies
		right = func(_ int, x float64) bool { first = max(first, x); return x > 0 && !math.IsInf(x, 0) }
	}
	var b buffer
	for at := 0; at < n; at += chunk {
		values := make([]float64, min(chunk, n-at))
		if err := b.read(values, t.Data, t.DType, at); err != nil {
			return inTensor(t, err)
		}
		for i, x := range values {
			if !right(at+i, x) {
				return errOther
			}
		}
	}
	if first == 0 && (strings.HasSuffix(name, "_cached") && !strings.HasSuffix(name, "sin_cached") || strings.HasSuffix(name, "inv_freq")) {
		return errOther
	}
	return nil
}

// whatComputed says of a tensor that is left out what was seen of it.
func whatComputed(name string) string {
	if strings.HasSuffix(name, "bias") || strings.HasSuffix(name, "position_ids") {
		return "it has what is computed from the configuration"
	}
	return "it is computed from the configuration, and its values may be right"
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
