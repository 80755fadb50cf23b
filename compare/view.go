package compare

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// view is the part of a tensor that takes part in a comparison, as a tensor of its own: all of it, or some rows of one
// axis.
type view struct {
	trace *capture.Trace
	rec   capture.Record
	shape []int

	// The elements of the view, in its row-major order: block 0, block 1 ..., each stride elements after the one
	// before, and of each block the same spans. All in elements of the tensor.
	stride, blocks int
	spans          []span
}

// span is length elements from start on.
type span struct{ start, length int }

// whole is the view of a complete tensor.
func whole(t *capture.Trace, r capture.Record) view {
	n := elements(r.Shape)
	return view{trace: t, rec: r, shape: r.Shape, stride: n, blocks: 1, spans: []span{{0, n}}}
}

// elements is the product of a shape out of a trace, where the header's sizes were checked against the file's.
func elements(shape []int) int {
	n, _ := hooks.Elements(shape)
	return n
}

// cut is the part of one axis that is compared: some of its indexes, which ascend.
type cut struct {
	axis int
	rows []int
}

// cut narrows a view of a whole tensor; nil leaves it as it is.
func (v view) cut(c *cut) view {
	if c == nil {
		return v
	}
	axis, keep := c.axis, c.rows
	inner := elements(v.shape[axis+1:])
	v.stride, v.blocks = v.shape[axis]*inner, elements(v.shape[:axis])
	v.shape = slices.Clone(v.shape)
	v.shape[axis] = len(keep)
	v.spans = nil
	if elements(v.shape) == 0 { // a header may claim any number of blocks of nothing
		v.blocks = 0
		return v
	}
	for _, r := range keep {
		last := len(v.spans) - 1
		if last >= 0 && v.spans[last].start+v.spans[last].length == r*inner {
			v.spans[last].length += inner
			continue
		}
		v.spans = append(v.spans, span{r * inner, inner})
	}
	return v
}

// cursor reads a view from its start to its end.
type cursor struct {
	view
	block, span, done int // done: elements of the span that were read
}

// next reads up to len(dst) elements: their bytes to the start of raw, which has room, and their values to dst. It
// returns how many, less than len(dst) only at the end of the view.
func (c *cursor) next(dst []float64, raw []byte) (int, error) {
	size := c.rec.DType.Size()
	n := 0
	for n < len(dst) && c.block < c.blocks {
		if c.span == len(c.spans) {
			c.block, c.span = c.block+1, 0
			continue
		}
		s := c.spans[c.span]
		k := min(len(dst)-n, s.length-c.done)
		off := c.block*c.stride + s.start + c.done
		if k > 0 {
			if _, err := c.trace.ReadAt(c.rec, raw[n*size:(n+k)*size], int64(off)*int64(size)); err != nil {
				return 0, fmt.Errorf("comparing: %w", err)
			}
		}
		n += k
		if c.done += k; c.done == s.length {
			c.span, c.done = c.span+1, 0
		}
	}
	return n, floats.Decode(dst[:n], c.rec.DType, raw)
}
