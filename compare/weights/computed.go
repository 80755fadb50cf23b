package weights

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/floats"
)

// errOther reports a tensor that has the name of a computed buffer, but not the values that the configuration gives.
var errOther = errors.New("its values differ from the configuration's")

// Rotary is what the configuration gives some layers for their rotary pairs.
type Rotary struct {
	Frequencies []float64 // a position, one for each pair, as float32 has them
	Unscaled    []float64 // the same without the scaling for long contexts
	Layers      []int     // the layers that turn by them
}

// computed reports a tensor that has what a checkpoint need not have, as its name says: a causal mask, positions, frequencies. Each element
// is held against what the configuration gives: a mask and positions exactly, frequencies and their divisors to the rounding of float32 and
// of the tensor's dtype, their cosines and sines to what that changes in an angle. known is false where the configuration is of no family
// whose frequencies are known: then it is checked that the values may be some. errOther, with the reason, is returned for values that are
// not right; other errors are those of reading.
func computed(t *Tensor, list []Rotary) (known bool, err error) {
	if t.check() != nil || t.Coding != nil {
		return false, errOther
	}
	name := t.key()
	switch {
	case strings.HasSuffix(name, "bias"), strings.HasSuffix(name, "position_ids"):
		return true, mask(t)
	case len(list) == 0:
		return false, plausible(t)
	}
	layer, _ := layerOf(name)
	err = errOther
	for _, x := range list {
		if layer >= 0 && !slices.Contains(x.Layers, layer) {
			continue
		}
		if err = each(t, x.gives(t)); !errors.Is(err, errOther) {
			return true, err
		}
	}
	return true, err
}

// rounding is what computing a frequency in float32 may change, as a part of it: eight roundings, and that of the exponent of a power.
func (x *Rotary) rounding() float64 {
	n := len(x.Unscaled)
	if n == 0 {
		return 0
	}
	return (8 + math.Log(x.Unscaled[0]/x.Unscaled[n-1])) * 0x1p-24
}

// gives says whether a number is what the configuration gives an element of a tensor; it is nil for a tensor of another size.
func (x *Rotary) gives(t *Tensor) func(i int, v float64) bool {
	name, n, pairs := t.key(), t.elements(), len(x.Frequencies)
	rounding := x.rounding()
	near := func(v, want, by float64) bool {
		if by += math.Abs(want) * rounding; t.DType.Float() {
			by += floats.Spacing(t.DType, want)
		}
		return math.Abs(v-want) <= by
	}
	switch {
	case strings.HasSuffix(name, "_cached"):
		size := squeezed(t.Shape)
		if len(size) != 2 || size[1] != pairs && size[1] != 2*pairs {
			return nil
		}
		of := math.Cos
		if strings.HasSuffix(name, "sin_cached") {
			of = math.Sin
		}
		halves, neighbours := true, true // how the two of a pair lie, which is not known
		return func(i int, v float64) bool {
			position, c := float64(i/size[1]), i%size[1]
			is := func(pair int) bool {
				angle := position * x.Frequencies[pair]
				return near(v, of(angle), (angle+1)*rounding)
			}
			halves = halves && is(c%pairs)
			neighbours = neighbours && is(c*pairs/size[1])
			return halves || neighbours
		}
	case n != pairs:
		return nil
	case strings.HasSuffix(name, "inv_freq"):
		return func(i int, v float64) bool { return near(v, x.Frequencies[i], 0) }
	}
	return func(i int, v float64) bool { // rope_freqs.weight: divisors
		want := x.Unscaled[i] / x.Frequencies[i]
		return near(v, want, want*rounding)
	}
}

// mask is computed for a causal mask and for positions.
func mask(t *Tensor) error {
	size := squeezed(t.Shape)
	switch name := t.key(); {
	case strings.HasSuffix(name, "masked_bias"):
		return each(t, func(_ int, x float64) bool { return x <= -1e4 })
	case strings.HasSuffix(name, "position_ids"):
		return each(t, func(i int, x float64) bool { return same(x, float64(i)) })
	}
	if len(size) == 0 { // one element
		size = []int{1, 1}
	}
	if len(size) != 2 || size[0] != size[1] {
		return errOther
	}
	return each(t, func(i int, x float64) bool { return (x == 0 || x == 1) && (x == 1) == (i%size[1] <= i/size[1]) })
}

// plausible checks rotary buffers of an unknown configuration: frequencies, cached cosines and sines, and divisors of frequencies. It
// returns errOther for impossible values.
func plausible(t *Tensor) error {
	name := t.key()
	var right func(i int, x float64) bool
	last, first := math.Inf(1), 0.0
	switch {
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
	if err := each(t, right); err != nil {
		return err
	}
	if first == 0 && (strings.HasSuffix(name, "_cached") && !strings.HasSuffix(name, "sin_cached") || strings.HasSuffix(name, "inv_freq")) {
		return errOther
	}
	return nil
}

// each asks of every element whether it is right; nothing is right by nil.
func each(t *Tensor, right func(i int, x float64) bool) error {
	if right == nil {
		return fmt.Errorf("%w: it has %s", errOther, count(t.elements(), "element", "elements"))
	}
	n := t.elements()
	var b buffer
	for at := 0; at < n; at += chunk {
		values := make([]float64, min(chunk, n-at))
		if err := b.read(values, t.Data, t.DType, at); err != nil {
			return inTensor(t, err)
		}
		for i, x := range values {
			if !right(at+i, x) {
				return fmt.Errorf("%w: the first is %s, of element %d", errOther, number(x), at+i)
			}
		}
	}
	return nil
}
