package capture

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/order/program"
)

// Value reads the first firing of a name in a pass as float64, which holds every float and every integer below 2^53 exactly. For
// a sum of terms, Bound is the largest possible distance from the engine's own sum, which the engine computed with. An error is
// from reading, or from a tensor that is not in the trace.
func (t *Trace) Value(pass int, name string) (program.Value, error) {
	r, ok := t.Lookup(pass, name)
	if !ok {
		return program.Value{}, fmt.Errorf("%s has no tensor %s", t.path, plain.Quote(Key(pass, name, 0)))
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

// Part is Value of n elements from element at on, as a vector, so that a large tensor can be read in parts. For a sum of terms Part is
// an error.
func (t *Trace) Part(pass int, name string, at, n int) (program.Value, error) {
	r, ok := t.Lookup(pass, name)
	if !ok {
		return program.Value{}, fmt.Errorf("%s has no tensor %s", t.path, plain.Quote(Key(pass, name, 0)))
	}
	width := r.DType.Size()
	if all := int(r.Size) / width; r.Sums() || at < 0 || n < 0 || at > all-n {
		return program.Value{}, fmt.Errorf("%s: no elements %d to %d of %s", t.path, at, at+n, plain.Quote(r.Key))
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

// A Sum bounds, for each element of a sum of terms, the difference from an engine's own sum. An engine adds the terms in any order,
// and rounds after each step or only at the end.
type Sum struct {
	// Order is the largest possible distance between the engine's sum and the sum of the record, which is rounded once. With n terms that are
	// not 0, each of n−2 partial sums has an error of u·M, where M is the larger of the sum of the positive terms and the sum of the negative
	// terms, and u is half a unit of the dtype that holds the terms. The last rounding of the two sums adds 2u·|sum|. The engine's sum of two
	// terms is rounded once as well, and one term needs no sum. Subnormal numbers have an exact sum, but an engine may take subnormal terms and
	// sums for zero; see [floats.Flushed].
	//
	// Higham, Accuracy and Stability of Numerical Algorithms, section 4.2.
	Order []float64
	// Magnitude is the sum of the magnitudes of the terms; 0 with only one term that is not 0.
	Magnitude []float64
	// Rounded is the largest possible distance between the sum of the terms and the sum of the numbers before their rounding to the terms.
	// It is u·Magnitude, and for each term the rounding error of a subnormal number, or the whole number where an engine takes it for zero.
	// With at most one term that is not 0, one term is not counted.
	Rounded []float64
	Held    hooks.DType // the dtype that holds the terms
	program.Terms
}

// Summed returns the bounds for an engine's own sum of a record's terms; nil for a record that is no sum.
func (t *Trace) Summed(r Record) (*Sum, error) {
	if r.terms == nil {
		return nil, nil
	}
	n := int(r.Size) / r.DType.Size()
	held, err := HeldIn(r.terms, r.DType, r.Size)
	if err != nil {
		return nil, fmt.Errorf("trace %s: read tensor %s: %w", t.path, plain.Quote(r.Key), err)
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
			return nil, fmt.Errorf("trace %s: read tensor %s: %w", t.path, plain.Quote(r.Key), err)
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

// order is Order of an element of k terms. most is the larger of the sum of the positive terms and the sum of the negative terms; tiny is the sum
// of the magnitudes of subnormal terms.
func (s *Sum) order(k int, most, sum, tiny float64) float64 {
	flushed := floats.Flushed(s.Held)
	steps := tiny
	if k > 2 {
		steps += float64(k-2) * (s.Unit*most*(1+float64(k)*s.Unit) + flushed)
	}
	switch {
	case steps > 0: // each of the two sums is rounded
		return steps + 2*floats.RoundingError(s.Held, sum+steps) + min(sum, flushed)
	case k == 2 && sum < flushed:
		return sum
	}
	return 0
}

// HeldIn is the dtype in which tensors of d, with some number of bytes each, were computed: bfloat16 or float16 if the dtype holds every
// element, else d. Many ports compute in a small dtype and write float32.
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
