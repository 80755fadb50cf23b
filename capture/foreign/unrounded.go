package foreign

import (
	"io"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Unrounded is a dump before its rounding, for a dump that was computed in float32 and rounded to d, bfloat16 or float16, when written. Each
// element becomes the float32 number nearest to the other trace among all numbers that round to the element. So a difference here is a lower
// bound of the difference before the rounding. If the nearest number is the midpoint between two numbers of d, the element becomes the
// midpoint. NaN, infinities, tensors of a dtype other than d and float32, and tensors that the other trace lacks or has in another shape, stay
// unchanged. t stays open while the new trace is used.
func Unrounded(t, other *capture.Trace, d hooks.DType) (*capture.Trace, error) {
	sources := t.Sources()
	for i := range sources {
		s := &sources[i]
		r, ok := other.LookupFiring(s.Pass, s.Name, s.Firing)
		if !ok || s.DType != d && s.DType != hooks.F32 || r.DType != hooks.F32 {
			continue
		}
		first, ok := rowsOf(s, r)
		if !ok {
			continue
		}
		n, _ := hooks.Elements(s.Shape)
		s.Data, s.DType = &unrounded{of: s.Data, stored: s.DType, to: d, other: other, r: r, first: int64(first), n: int64(n)}, hooks.F32
		s.Terms = nil
	}
	return capture.Assemble(t.Path(), sources, t.Manifest(), t.Sequence(), t.Notes(), t)
}

// unrounded is a tensor of a dump before its rounding, in float32: the nearest to the other trace that rounds to
// the dump.
type unrounded struct {
	of         io.ReaderAt
	stored, to hooks.DType
	other      *capture.Trace
	r          capture.Record
	first      int64 // the element of r that matches element 0
	n          int64
}

// ReadAt reads bytes as [io.ReaderAt] does.
func (x *unrounded) ReadAt(p []byte, off int64) (int, error) {
	return readEncoded(p, off, x.n, 4, x.encoded)
}

// encoded returns the bytes of the elements [from, to).
func (x *unrounded) encoded(from, to int64) ([]byte, error) {
	width := int64(x.stored.Size())
	raw, far := make([]byte, (to-from)*width), make([]byte, (to-from)*4)
	if got, err := x.of.ReadAt(raw, from*width); got < len(raw) {
		return nil, err
	}
	if got, err := x.other.ReadAt(x.r, far, (x.first+from)*4); got < len(far) {
		return nil, err
	}
	l, r := make([]float64, to-from), make([]float64, to-from)
	if err := floats.Decode(l, x.stored, raw); err != nil {
		return nil, err
	}
	if err := floats.Decode(r, hooks.F32, far); err != nil {
		return nil, err
	}
	out := far[:0]
	for i, y := range l {
		out = floats.Append(out, hooks.F32, before(x.to, y, r[i]))
	}
	return out, nil
}

// before is the number nearest to r that rounds to y in d; y if d does not hold y.
func before(d hooks.DType, y, r float64) float64 {
	switch {
	case math.IsNaN(y) || math.IsInf(y, 0) || math.IsNaN(r) || floats.Round(d, y) != y:
		return y
	case floats.Round(d, r) == y:
		return r
	}
	if next := beside(d, y, r > y); !math.IsInf(next, 0) {
		return (y + next) / 2
	}
	return y
}

// beside is the next number of d above or below y, which is a number of d.
func beside(d hooks.DType, y float64, above bool) float64 {
	bits, from := floats.BF16(float32(y)), floats.FromBF16
	if d == hooks.F16 {
		bits, from = floats.F16(float32(y)), floats.FromF16
	}
	switch {
	case y == 0 && above:
		bits = 1
	case y == 0:
		bits = 1<<15 | 1
	case y > 0 == above:
		bits++
	default:
		bits--
	}
	return float64(from(bits))
}

// The limits of the test in [RoundingOf]. Null hypothesis: the port computed in d. Then a linear operation on rounded inputs returns the
// rounded float32 result in about 6 of 10 elements, and is off by about half a unit of d. The test needs roundingsLeast elements, in two
// rows or more, that are not numbers of d in the other trace. The hypothesis is rejected if fewer than 1 in roundingsOf of these elements
// differ from the rounded element of the other trace. An element that is off by more than roundingsFar half units of the root mean square
// is wrong for a port in any dtype.
const (
	roundingsLeast = 8
	roundingsOf    = 16
	roundingsFar   = 32
)

// Numbers is the result of [RoundingOf].
type Numbers int

const (
	FewNumbers     Numbers = iota // too few elements to tell, or another shape or dtype
	RoundedNumbers                // the elements of the other trace, rounded to d
	OtherNumbers                  // different elements, as of a port that computes in fewer digits
	NoNumbers                     // an element that no correct port has
)

// RoundingOf reports whether a tensor equals the float32 tensor of the other trace after rounding to d. Elements that are numbers of d in the
// other trace show nothing.
func RoundingOf(t *capture.Trace, l capture.Record, other *capture.Trace, r capture.Record, d hooks.DType) (Numbers, error) {
	if !slices.Equal(l.Shape, r.Shape) || l.DType != d && l.DType != hooks.F32 || r.DType != hooks.F32 || len(l.Shape) == 0 {
		return FewNumbers, nil
	}
	n, _ := hooks.Elements(l.Shape)
	width := int64(max(l.Shape[len(l.Shape)-1], 1))
	seen, equal, first, rows := 0, 0, int64(-1), false
	var squares, farthest float64
	for from := int64(0); from < int64(n); from += chunk {
		count := min(int64(n)-from, chunk)
		x, err := decoded(t, l, from, count)
		if err != nil {
			return FewNumbers, err
		}
		y, err := decoded(other, r, from, count)
		if err != nil {
			return FewNumbers, err
		}
		for i, v := range y {
			to := floats.Round(d, v)
			if v != v || math.IsInf(to, 0) {
				continue
			}
			squares += v * v
			farthest = max(farthest, math.Abs(x[i]-v)) // NaN if x[i] is NaN
			if to == v {
				continue
			}
			if row := (from + int64(i)) / width; first < 0 {
				first = row
			} else if row != first {
				rows = true
			}
			if seen++; x[i] == to {
				equal++
			}
		}
	}
	unit := math.Sqrt(squares / max(float64(n), 1))
	unit = math.Abs(beside(d, floats.Round(d, unit), true)-floats.Round(d, unit)) / 2
	switch {
	case !(farthest <= roundingsFar*unit):
		return NoNumbers, nil
	case seen < roundingsLeast || !rows:
		return FewNumbers, nil
	case roundingsOf*(seen-equal) < seen:
		return RoundedNumbers, nil
	}
	return OtherNumbers, nil
}

// decoded returns count elements of a tensor.
func decoded(t *capture.Trace, r capture.Record, from, count int64) ([]float64, error) {
	width := int64(r.DType.Size())
	raw, out := make([]byte, count*width), make([]float64, count)
	if _, err := t.ReadAt(r, raw, from*width); err != nil {
		return nil, err
	}
	return out, floats.Decode(out, r.DType, raw)
}
