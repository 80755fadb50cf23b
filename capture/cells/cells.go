// Package cells reads tensors of attention that have more cells of keys than the order has keys.
//
// transformers drops the keys in front of a sliding window. Other engines keep them and mask them, and a static cache has cells that hold no
// token yet. [Fit] leaves such cells off: the tensor then has the keys of the order, from the oldest to the newest. A key that the order
// allows for any query of the pass stays, whatever its probability. What was left off stays known as [capture.LeftOff], so that a
// comparison finds a probability there that is not zero.
package cells

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// Fit returns a trace whose tensors with a key axis have the order's keys, if cells had to be left off; else t itself. A tensor with fewer
// keys than the order, or with other sizes, stays: it has the wrong shape. Without token ids, or an order with operations, the keys are
// unknown. t stays open as long as the new trace is used.
func Fit(t *capture.Trace, list *order.List) (*capture.Trace, error) {
	if list == nil || list.Config == nil {
		return t, nil
	}
	passes, err := t.IDs()
	if err != nil { // whoever needs the ids says so
		return t, nil
	}
	var tokens []int
	for _, ids := range passes {
		tokens = append(tokens, len(ids))
	}
	f := &fitter{trace: t, list: list, passes: order.Passes(tokens), layers: layersOf(list), tables: map[place]*table{}}
	var sources []capture.Source
	for i, r := range t.Records() {
		fitted, err := f.fit(r)
		if err != nil {
			return nil, err
		}
		if fitted == nil {
			continue
		}
		if sources == nil {
			sources = t.Sources()
		}
		fitted.of(&sources[i])
	}
	if sources == nil {
		return t, nil
	}
	return t.Reassemble(sources, f.note())
}

// fitter leaves cells off the tensors of one trace.
type fitter struct {
	trace  *capture.Trace
	list   *order.List
	passes []order.Pass
	layers map[int]layer
	tables map[place]*table

	tensors     int // with cells that were left off
	free, early int // the largest numbers of free cells, and of keys in front of the window, in one tensor
}

// place is where cells mean the same keys: the tensors of one layer and pass with the same number of cells.
type place struct{ layer, pass, cells int }

// view is a tensor with some cells left off.
type view struct {
	axis  int
	shape []int // in the file, with every axis of the order
	keys  int   // that the order has
	table *table
}

// fit finds the kept cells of a record; nil if the record stays unchanged.
func (f *fitter) fit(r capture.Record) (*view, error) {
	n := order.Node{Entry: f.list.Index(r.Name), Pass: r.Pass}
	if n.Entry < 0 || r.Pass >= len(f.passes) || !f.list.In(n) || r.Printed != nil || r.LeftOff != nil {
		return nil, nil
	}
	e := f.list.At(n)
	axes := strings.ReplaceAll(e.Axes, " ", "")
	axis := keyAxis(e)
	if own, ok := f.trace.Manifest().Axes[r.Name]; axis < 0 || ok && strings.ReplaceAll(own, " ", "") != axes {
		return nil, nil
	}
	want := f.list.Size(n, f.passes)
	shape := r.Shape
	if len(shape) == len(want)-1 && want[0] == 1 {
		shape = append([]int{1}, shape...)
	}
	if len(shape) != len(want) || shape[axis] <= want[axis] {
		return nil, nil
	}
	someRows := r.LastRow || len(f.trace.Manifest().Scope.Positions) > 0
	for i, size := range shape {
		if i != axis && size != want[i] && !(someRows && f.list.Entries[n.Entry].Shape[i] == order.T && size < want[i]) {
			return nil, nil
		}
	}
	t, err := f.table(f.layerOf(e), r.Pass, shape[axis], want[axis])
	if err != nil || t == nil {
		return nil, err
	}
	f.count(t)
	return &view{axis, shape, want[axis], t}, nil
}

// keyAxis is the axis of an entry that counts keys, −1 without one. A mask's key axis is the last, with or without named axes.
func keyAxis(e *order.Entry) int {
	if e.Compare == order.Pattern {
		return len(e.Shape) - 1
	}
	return strings.IndexRune(strings.ReplaceAll(e.Axes, " ", ""), order.AxisKey)
}

// layerOf is the layer of an entry. For a mask it is the first layer that reads the mask.
func (f *fitter) layerOf(e *order.Entry) int {
	if e.Layer >= 0 {
		return e.Layer
	}
	for i := range f.list.Entries {
		for _, in := range f.list.Entries[i].Inputs {
			if in.Name == e.Name && f.list.Entries[i].Layer >= 0 {
				return f.list.Entries[i].Layer
			}
		}
	}
	return -1
}

func (f *fitter) count(t *table) {
	f.tensors++
	f.free = max(f.free, t.cells-t.total)
	f.early = max(f.early, min(t.total, t.cells)-t.keys)
}

// note says how many cells were left off, in words.
func (f *fitter) note() string {
	var what []string
	if f.free > 0 {
		what = append(what, fmt.Sprintf("up to %d that hold no token", f.free))
	}
	if f.early > 0 {
		what = append(what, fmt.Sprintf("up to %d before the window", f.early))
	}
	noun := "tensors have"
	if f.tensors == 1 {
		noun = "tensor has"
	}
	return fmt.Sprintf("%d %s cells of keys that no query may attend to: %s; left out if their probability is zero", f.tensors, noun, strings.Join(what, ", "))
}

// of makes a source the view of itself.
func (v *view) of(s *capture.Source) {
	s.LeftOff = &capture.LeftOff{Axis: v.axis, Shape: v.shape, Data: s.Data, Cells: v.table.leftOff}
	outer, inner := 1, s.DType.Size()
	for _, n := range v.shape[:v.axis] {
		outer *= n
	}
	for _, n := range v.shape[v.axis+1:] {
		inner *= n
	}
	shape := append([]int(nil), v.shape...)
	shape[v.axis] = v.keys
	s.Shape, s.Data = shape, &picked{v.table, outer, inner, s.Data}
	for i, term := range s.Terms {
		s.Terms[i] = &picked{v.table, outer, inner, term}
	}
}
