package measure

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
)

// View is the compared part of a tensor: the whole tensor, or some rows of one axis.
type View struct {
	trace *capture.Trace
	Rec   capture.Record
	Shape []int
	of    *Cut // the part of an axis that it is; nil: all of the tensor

	// The elements of the view, in its row-major order: period 0, period 1 ..., each stride elements after the
	// one before, and of each period the same spans. All in elements of the tensor.
	stride int
	spans  []span
	before []int // elements before each span of a period and, at the end, of all of them
}

// span is length elements from start on.
type span struct{ start, length int }

// Whole is the view of a complete tensor.
func Whole(t *capture.Trace, r capture.Record) View {
	n := Elements(r.Shape)
	return View{trace: t, Rec: r, Shape: r.Shape, stride: n, spans: []span{{0, n}}, before: []int{0, n}}
}

// Elements is the product of a shape out of a trace, where the header's sizes were checked against the file's.
func Elements(shape []int) int {
	n, _ := hooks.Elements(shape)
	return n
}

// Cut is the compared part of one axis: some indexes, in order.
type Cut struct {
	Axis int
	Rows []int
}

// Cut narrows a view of a whole tensor; a nil cut changes nothing.
func (v View) Cut(c *Cut) View {
	if c == nil {
		return v
	}
	v.of = c
	axis, keep := c.Axis, c.Rows
	inner := Elements(v.Shape[axis+1:])
	v.stride = v.Shape[axis] * inner
	v.Shape = slices.Clone(v.Shape)
	v.Shape[axis] = len(keep)
	v.spans, v.before = nil, []int{0}
	for _, r := range keep {
		if last := len(v.spans) - 1; last >= 0 && v.spans[last].start+v.spans[last].length == r*inner {
			v.spans[last].length += inner
			v.before[last+1] += inner
			continue
		}
		v.spans = append(v.spans, span{r * inner, inner})
		v.before = append(v.before, v.before[len(v.spans)-1]+inner)
	}
	return v
}

// read reads n elements of the view, from element at on, to the start of raw, which has room for them.
func (v View) read(raw []byte, at, n int) error {
	size := v.Rec.DType.Size()
	for n > 0 {
		period, rest := at/v.before[len(v.spans)], at%v.before[len(v.spans)]
		// The last span that starts at rest or before it.
		i, found := slices.BinarySearch(v.before, rest)
		if !found {
			i--
		}
		done := rest - v.before[i]
		k := min(n, v.spans[i].length-done)
		off := period*v.stride + v.spans[i].start + done
		if _, err := v.trace.ReadAt(v.Rec, raw[:k*size], int64(off)*int64(size)); err != nil {
			return fmt.Errorf("comparing: %w", err)
		}
		raw, at, n = raw[k*size:], at+k, n-k
	}
	return nil
}

// Values fills dst with the values of the view from element at on; there are as many.
func (v View) Values(dst []float64, at int) error {
	raw := make([]byte, len(dst)*v.Rec.DType.Size())
	if err := v.read(raw, at, len(dst)); err != nil {
		return err
	}
	return floats.Decode(dst, v.Rec.DType, raw)
}

// Place translates an element of the view to the indexes of its tensor.
func (v View) Place(at int64) []int {
	index := container.Indexes(at, v.Shape)
	if v.of != nil {
		index[v.of.Axis] = v.of.Rows[index[v.of.Axis]]
	}
	return index
}
