package keyorder

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// chunk is how many elements of a tensor are read at one time.
const chunk = 1 << 16

// Outside says which elements of a captured node, in the cells that were left off, no query may see: probabilities that are not zero, and scores
// and masks that are not masked, as in "key 3, in front of the window, has probability 0.02 (head 1, token 540)". It is empty without any.
func (l *Layout) Outside(n order.Node) (string, error) {
	if l.List == nil {
		return "", nil
	}
	e := &l.List.Entries[n.Entry]
	rec, ok := l.trace.Lookup(n.Pass, e.Name)
	if !ok || rec.LeftOff == nil || e.Op == nil {
		return "", nil
	}
	l.mu.Lock()
	found, known := l.outside[n]
	l.mu.Unlock()
	if known {
		return found, nil
	}
	found, err := outside(l.List, e, rec, l.trace.Manifest().DType)
	if err != nil {
		return "", fmt.Errorf("%s: %w", rec.Key, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outside[n] = found
	return found, nil
}

// outside looks at the left-off cells of one tensor, for a model's dtype.
func outside(list *order.List, e *order.Entry, rec capture.Record, model hooks.DType) (string, error) {
	seen, words := sees(list, e, rec.DType, model)
	if seen == nil {
		return "", nil
	}
	cells, err := rec.LeftOff.Cells()
	if err != nil || len(cells) == 0 {
		return "", err
	}
	off := make([]*capture.Cell, rec.LeftOff.Shape[rec.LeftOff.Axis])
	for i := range cells {
		off[cells[i].At] = &cells[i]
	}
	inner := measure.Elements(rec.LeftOff.Shape[rec.LeftOff.Axis+1:])
	count, most, at := 0, math.Inf(-1), -1
	err = elements(rec, func(i int, x float64) {
		if off[i/inner%len(off)] == nil || !seen(x) {
			return
		}
		if count++; at < 0 || x > most {
			most, at = x, i
		}
	})
	if err != nil || count == 0 {
		return "", err
	}
	text := fmt.Sprintf("%s %s (%s)", name(off[at/inner%len(off)]), fmt.Sprintf(words, most), where(e, rec.LeftOff, at))
	if count > 1 {
		text += fmt.Sprintf(", and so have %d more", count-1)
	}
	return text, nil
}

// sees returns a test whether a value of an entry shows a key to a query, and the words for it; nil for an entry without such values.
func sees(list *order.List, e *order.Entry, stored, model hooks.DType) (func(float64) bool, string) {
	hides := measure.Masks(stored, model)
	visible := func(x float64) bool { return !hides(x) }
	switch {
	case e.Compare == order.Pattern:
		return visible, "is not masked: %.3g"
	case e.Compare == order.Allowed:
		return visible, "is not masked, its score is %.3g"
	case probabilities(list, e):
		return func(x float64) bool { return x != 0 }, "has probability %.3g"
	}
	return nil, ""
}

// probabilities reports whether an entry is a softmax over keys, or a copy of one in another dtype or shape.
func probabilities(list *order.List, e *order.Entry) bool {
	for {
		switch e.Op.Kind() {
		case (op.Softmax{}).Kind():
			return KeyAxis(e) == len(e.Axes)-1
		case (op.Cast{}).Kind(), (op.Identity{}).Kind(), "to", "view": // the last two are those of recorded programs
		default:
			return false
		}
		at := -1
		if len(e.Inputs) > 0 {
			at = list.Index(e.Inputs[0].Name)
		}
		if at < 0 || at >= list.Index(e.Name) {
			return false
		}
		e = &list.Entries[at]
	}
}

// elements calls do with each element of a tensor, cells that were left off included, and its row-major index.
func elements(rec capture.Record, do func(i int, x float64)) error {
	n, width := measure.Elements(rec.LeftOff.Shape), rec.DType.Size()
	raw, values := make([]byte, min(n, chunk)*width), make([]float64, min(n, chunk))
	for from := 0; from < n; from += chunk {
		part := values[:min(n-from, chunk)]
		bytes := raw[:len(part)*width]
		if got, err := rec.LeftOff.Data.ReadAt(bytes, int64(from)*int64(width)); got < len(bytes) {
			return cmp.Or(err, io.ErrUnexpectedEOF)
		}
		if err := floats.Decode(part, rec.DType, bytes); err != nil {
			return err
		}
		for k, x := range part {
			do(from+k, x)
		}
	}
	return nil
}

// name names a cell by the key that it has.
func name(c *capture.Cell) string {
	if c.Key < 0 {
		return fmt.Sprintf("cell %d, which holds no token,", c.At)
	}
	return fmt.Sprintf("key %d, before the window,", c.Key)
}

// where gives the indexes of an element on the other axes: "head 1, token 3".
func where(e *order.Entry, of *capture.LeftOff, at int) string {
	index := make([]int, len(of.Shape))
	for i := len(index) - 1; i >= 0; i-- {
		index[i] = at % of.Shape[i]
		at /= of.Shape[i]
	}
	text := ""
	for i, n := range of.Shape {
		if i == of.Axis || n == 1 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %d", measure.AxisName(e.Axes, i), index[i])
	}
	return cmp.Or(text, fmt.Sprintf("element %v", slices.Clone(index)))
}
