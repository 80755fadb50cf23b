package foreign

import (
	"io"
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
)

// Printed reports whether a trace has tensors that were read from a text of rounded numbers.
func Printed(t *capture.Trace) bool {
	return slices.ContainsFunc(t.Records(), func(r capture.Record) bool { return r.Printed != nil })
}

// Nearest fills in the tensors of a text. Each tensor becomes the tensor nearest to the other trace among all tensors that would be
// printed in the same way. So a difference here is a lower bound of the true difference, for any values that the text leaves out; no
// difference here proves nothing.
//
//   - A printed element moves towards the other trace by up to half a unit of its last decimal. An element that is not printed becomes
//     equal to the other trace.
//   - The printed sum s of all n elements bounds the distance as well: ‖l − r‖ ≥ |s − Σr|/√n, less the error of a sum in float32,
//     n·2⁻²⁴·Σ|r|. If this bound is larger than the distance of the elements, every element is r plus the same amount, so that the
//     elements have that sum.
//
// The first bound holds for each element, so for each part of a tensor. The second bound holds only for the whole tensor; without sums
// it is not used. A tensor that the other trace lacks, or has in another shape, stays unchanged. t stays open while the new trace is
// used.
func Nearest(t, other *capture.Trace, sums bool) (*capture.Trace, error) {
	if !Printed(t) {
		return t, nil
	}
	sources := t.Sources()
	for i := range sources {
		s := &sources[i]
		r, ok := other.LookupFiring(s.Pass, s.Name, s.Firing)
		if s.Printed == nil || !ok || !r.DType.Float() {
			continue
		}
		first, ok := rowsOf(s, r)
		if !ok {
			continue
		}
		n, _ := hooks.Elements(s.Shape)
		s.Data = &nearest{of: *s, other: other, r: r, first: int64(first), n: int64(n), sums: sums && s.Printed.HasSum}
	}
	return capture.Assemble(t.Path(), sources, t.Manifest(), t.Sequence(), t.Notes(), t)
}

// rowsOf is the element of the tensor in the other trace at which the tensor of the text begins: 0, or the start of the last row if the
// text has only the last row. ok is false if the shapes do not fit.
func rowsOf(s *capture.Source, r capture.Record) (first int, ok bool) {
	if slices.Equal(s.Shape, r.Shape) {
		return 0, true
	}
	if !s.LastRow || r.LastRow || len(s.Shape) != len(r.Shape) || len(s.Shape) < 2 || r.Shape[0] != 1 || !slices.Equal(s.Shape[2:], r.Shape[2:]) {
		return 0, false
	}
	row, _ := hooks.Elements(s.Shape)
	all, _ := hooks.Elements(r.Shape)
	return all - row, true
}

// nearest is a tensor of a text, filled in.
type nearest struct {
	of    capture.Source
	other *capture.Trace
	r     capture.Record
	first int64 // the element of r that matches element 0
	n     int64
	sums  bool

	once  sync.Once
	shift float64 // added to each element of r, if the printed sum proves a larger distance than the elements
	moved bool
	err   error
}

// chunk is the number of elements in memory at a time.
const chunk = 1 << 14

// ReadAt reads bytes as [io.ReaderAt] does.
func (x *nearest) ReadAt(p []byte, off int64) (int, error) {
	if x.once.Do(x.weigh); x.err != nil {
		return 0, x.err
	}
	return readEncoded(p, off, x.n, int64(x.of.DType.Size()), x.encoded)
}

// readEncoded reads bytes of n elements of a size, as [io.ReaderAt] does. encoded returns the bytes of the elements [from,
// to).
func readEncoded(p []byte, off, n, size int64, encoded func(from, to int64) ([]byte, error)) (int, error) {
	var end error
	if rest := n*size - off; int64(len(p)) > rest {
		p, end = p[:max(rest, 0)], io.EOF
	}
	done := 0
	for done < len(p) {
		from := (off + int64(done)) / size
		out, err := encoded(from, min(n, from+chunk))
		if err != nil {
			return done, err
		}
		done += copy(p[done:], out[(off+int64(done))-from*size:])
	}
	return done, end
}

// encoded returns the bytes of the elements [from, to).
func (x *nearest) encoded(from, to int64) ([]byte, error) {
	l, r, err := x.values(from, to)
	if err != nil {
		return nil, err
	}
	var out []byte
	for i := range l {
		v := l[i]
		if x.moved {
			v = r[i] + x.shift
		}
		out = floats.Append(out, x.of.DType, v)
	}
	return out, nil
}

// values returns elements of the text after the first bound of [Nearest], and the same elements of the other
// trace.
func (x *nearest) values(from, to int64) (l, r []float64, err error) {
	raw := make([]byte, (to-from)*int64(x.of.DType.Size()))
	if _, err := x.of.Data.ReadAt(raw, from*int64(x.of.DType.Size())); err != nil {
		return nil, nil, err
	}
	far := make([]byte, (to-from)*int64(x.r.DType.Size()))
	if _, err := x.other.ReadAt(x.r, far, (x.first+from)*int64(x.r.DType.Size())); err != nil {
		return nil, nil, err
	}
	l, r = make([]float64, to-from), make([]float64, to-from)
	if err := floats.Decode(l, x.of.DType, raw); err != nil {
		return nil, nil, err
	}
	if err := floats.Decode(r, x.r.DType, far); err != nil {
		return nil, nil, err
	}
	size, mark := x.of.DType.Size(), string(container.Elided(x.of.DType))
	for i := range l {
		if string(raw[i*size:(i+1)*size]) == mark {
			l[i] = r[i]
			continue
		}
		// The stored element is rounded to the dtype of the tensor, by up to half a unit.
		slack := x.of.Printed.Half + math.Abs(l[i])*floats.Unit(x.of.DType)
		switch d := l[i] - r[i]; {
		case math.Abs(d) <= slack:
			l[i] = r[i]
		case d > slack:
			l[i] -= slack
		case d < -slack:
			l[i] += slack
		}
	}
	return l, r, nil
}

// weigh sets the shift if the printed sum proves a larger distance than the elements.
func (x *nearest) weigh() {
	sum := x.of.Printed.Sum
	if !x.sums || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return
	}
	var total, all, apart float64
	for from := int64(0); from < x.n; from += chunk {
		l, r, err := x.values(from, min(x.n, from+chunk))
		if err != nil {
			x.err = err
			return
		}
		for i := range l {
			total += r[i]
			all += math.Abs(r[i])
			apart += (l[i] - r[i]) * (l[i] - r[i])
		}
	}
	const decimals = 0.5e-6 // rounding of the printed sum, which has six decimals
	n := float64(x.n)
	off := math.Abs(sum-total) - decimals - 1.01*math.Ldexp(n, -24)*all - math.Abs(sum)*math.Ldexp(1, -24)
	if off > 0 && off*off/n > apart {
		x.shift, x.moved = math.Copysign(off/n, sum-total), true
	}
}
