package capture

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// Value reads the first firing of a name in a pass as float64, which holds every float and every integer below 2^53
// exactly. Of a sum of terms, Bound says how far from it the engine's own sum may be, which it went on with. The error is that of
// reading, or of a tensor that is not there.
func (t *Trace) Value(pass int, name string) (program.Value, error) {
	r, ok := t.Lookup(pass, name)
	if !ok {
		return program.Value{}, fmt.Errorf("%s has no tensor %s", t.path, quote(Key(pass, name, 0)))
	}
	x, err := t.Read(r)
	if err != nil {
		return program.Value{}, err
	}
	v := program.Value{Shape: x.Shape, Data: make([]float64, len(x.Data)/x.DType.Size())}
	if err := floats.Decode(v.Data, x.DType, x.Data); err != nil || r.terms == nil {
		return v, err
	}
	s, err := t.Summed(r)
	if err != nil {
		return v, err
	}
	v.Bound, v.Terms = s.Order, &s.Terms
	return v, nil
}

// Part is Value of some elements that follow each other, from element at on: so much is in memory at one time, and no more. Of a sum of
// terms no part is read. Its shape is that of a vector.
func (t *Trace) Part(pass int, name string, at, n int) (program.Value, error) {
	r, ok := t.Lookup(pass, name)
	if !ok {
		return program.Value{}, fmt.Errorf("%s has no tensor %s", t.path, quote(Key(pass, name, 0)))
	}
	width := r.DType.Size()
	if all := int(r.Size) / width; r.Sums() || at < 0 || n < 0 || at > all-n {
		return program.Value{}, fmt.Errorf("%s: no elements %d to %d of %s", t.path, at, at+n, quote(r.Key))
	}
	raw := make([]byte, n*width)
	if got, err := t.ReadAt(r, raw, int64(at)*int64(width)); got < len(raw) {
		return program.Value{}, err
	}
	v := program.Value{Shape: []int{n}, Data: make([]float64, n)}
	return v, floats.Decode(v.Data, r.DType, raw)
}

// Sums reports whether a record is a sum of terms, such as the results of ranks; see [Trace.Summed].
func (r Record) Sums() bool { return r.terms != nil }

// A Sum says of each element of a sum of terms what an engine's own sum may have beside it. An engine adds the terms in any order, and
// rounds after each step or at the end alone.
type Sum struct {
	// Order is how far its sum may be from that of the record, which is rounded once. Of n terms that are not 0, n−2 sums on the way have
	// an error of u·M each, where M is the larger of the sums of the positive and of the negative terms, and u half a unit of the dtype that
	// holds the terms; the last rounding of the two sums adds 2u·|sum|. The sum of two has the one rounding, and one term has no sum. Subnormal
	// numbers have an exact sum, but an engine may take them for zero, terms as well as sums; see [floats.Flushed].
	//
	// Higham, Accuracy and Stability of Numerical Algorithms, section 4.2.
	Order []float64
	// Magnitude is the sum of the magnitudes of the terms; 0 where only one is not 0.
	Magnitude []float64
	// Rounded is how far the terms together may be from what was rounded to them: u·Magnitude, and for each term what rounding changes where
	// numbers are subnormal, or all of such a number where it is taken for zero. One of n terms is not counted where the others are 0.
	Rounded []float64
	Held    hooks.DType // the dtype that holds the terms
	program.Terms
}

// Summed says how far an engine's sum may be from that of a record; nil for a record that is no sum.
func (t *Trace) Summed(r Record) (*Sum, error) {
	if r.terms == nil {
		return nil, nil
	}
	n := int(r.Size) / r.DType.Size()
	held, err := HeldIn(r.terms, r.DType, r.Size)
	if err != nil {
		return nil, fmt.Errorf("trace %s: read tensor %s: %w", t.path, quote(r.Key), err)
	}
	s := &Sum{
		Order: make([]float64, n), Magnitude: make([]float64, n), Rounded: make([]float64, n), Held: held,
		Terms: program.Terms{Count: make([]int, n), Most: make([]float64, n), Unit: floats.Unit(held)},
	}
	above, below, tiny := make([]float64, n), make([]float64, n), make([]float64, n)
	flushed := floats.Flushed(held)
	raw, term := make([]byte, r.Size), make([]float64, n)
	for _, data := range r.terms {
		if got, err := data.ReadAt(raw, 0); got < len(raw) {
			return nil, fmt.Errorf("trace %s: read tensor %s: %w", t.path, quote(r.Key), err)
		}
		if err := floats.Decode(term, r.DType, raw); err != nil {
			return nil, err
		}
		for i, x := range term {
			if x != 0 {
				s.Count[i]++
			}
			above[i], below[i] = above[i]+max(x, 0), below[i]-min(x, 0)
			if a := math.Abs(x); a < flushed && len(r.terms) > 1 {
				tiny[i] += a
			}
		}
	}
	least := max(floats.RoundingError(held, 0), flushed)
	for i, k := range s.Count {
		s.Most[i] = max(above[i], below[i])
		s.Order[i] = s.order(k, s.Most[i], math.Abs(above[i]-below[i]), tiny[i])
		rounded := len(r.terms) - 1
		if k > 1 {
			s.Magnitude[i] = above[i] + below[i]
			rounded++
		}
		s.Rounded[i] = float64(s.Unit*s.Magnitude[i]) + float64(rounded)*least
	}
	return s, nil
}

// order is Order of an element of k terms, of which most is the larger of the sums of the positive and of the negative ones; tiny is the sum of the
// magnitudes of subnormal ones.
func (s *Sum) order(k int, most, sum, tiny float64) float64 {
	flushed := floats.Flushed(s.Held)
	steps := tiny
	if k > 2 {
		steps += float64(k-2) * (s.Unit*most*(1+float64(k)*s.Unit) + flushed)
	}
	switch {
	case steps > 0: // the two sums are rounded apart
		return steps + 2*floats.RoundingError(s.Held, sum+steps) + min(sum, flushed)
	case k == 2 && sum < flushed:
		return sum
	}
	return 0
}

// HeldIn is the dtype that tensors of d, of some bytes each, were computed in: bfloat16 or float16 where it holds all their elements, since
// many ports write float32 whatever they compute in; else d.
func HeldIn(terms []io.ReaderAt, d hooks.DType, bytes int64) (hooks.DType, error) {
	if d != hooks.F32 {
		return d, nil
	}
	const chunk = 1 << 18
	some := false
	left := []hooks.DType{hooks.BF16, hooks.F16}
	raw, values := make([]byte, min(bytes, chunk)), make([]float64, min(bytes, chunk)/int64(d.Size()))
	for _, data := range terms {
		for off := int64(0); off < bytes && len(left) > 0; off += chunk {
			part := raw[:min(bytes-off, chunk)]
			if got, err := data.ReadAt(part, off); got < len(part) {
				return d, err
			}
			x := values[:len(part)/d.Size()]
			if err := floats.Decode(x, d, part); err != nil {
				return d, err
			}
			some = some || slices.ContainsFunc(x, func(v float64) bool { return v != 0 })
			left = slices.DeleteFunc(left, func(to hooks.DType) bool {
				return slices.ContainsFunc(x, func(v float64) bool { return floats.Round(to, v) != v && v == v })
			})
		}
	}
	if !some || len(left) == 0 {
		return d, nil
	}
	return left[0], nil
}
