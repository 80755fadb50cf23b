package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// MapKind is a way to put elements in another order.
type MapKind uint8

// The maps, along an axis or two; sizes that do not go with them are no map.
const (
	Roll    MapKind = iota + 1 // by By places
	Reverse                    // last to first; with By, blocks of that size are
	Weave                      // in each block of By elements, read as By/N rows of N, columns come first
	Swap                       // two axes of one size are exchanged
	Reread                     // two axes are exchanged, and the result read in the old shape; with By, the second is split into parts of that size first
	First                      // every index of an axis reads one: By
	Along                      // repeated along the first, which it varied along, and varying along the second
	Flip                       // each block of By elements, last to first
	Apart                      // the sum of a row is split into the sums of N parts
	Unread                     // the inverse: read with the sizes of two axes exchanged, which are exchanged then
	Turn                       // N parts of a result are read as halves, not by turns, with By 1; else the other way round
	Blocks                     // blocks of By elements, read as rows of N blocks, come column by column
	Shift                      // no map: a step is taken of another value; By is earlier or later
	Cross                      // the parts of a result that are read apart are each another: By parts on
)

// Map is one of them.
type Map struct {
	Kind        MapKind
	Axis, Other int
	By, N       int // By 0: the whole axis
}

// Inverse is the map that undoes it in a shape.
func (m Map) Inverse(shape []int) Map {
	switch m.Kind {
	case Roll:
		m.By = -m.By
	case Weave:
		block := m.By
		if block == 0 && m.Axis < len(shape) {
			block = shape[m.Axis]
		}
		m.N = block / max(m.N, 1)
	case Blocks:
		if m.Axis < len(shape) {
			m.N = shape[m.Axis] / max(m.By*m.N, 1)
		}
	case Reread:
		m.Kind = Unread
	case Unread:
		m.Kind = Reread
	}
	return m
}

// Mapped returns a variable with its elements in another order. ok is false where the shape does not fit the map.
func (e *Editor) Mapped(v program.Var, m Map) (program.Var, bool) {
	if m.Axis >= len(v.Shape) || m.Other >= len(v.Shape) {
		return v, false
	}
	switch m.Kind {
	case Roll:
		return rolled(e, v, m)
	case Reverse:
		return reversed(e, v, m)
	case Flip:
		return flipped(e, v, m)
	case Weave:
		return interleaved(e, v, m)
	case Blocks:
		return byColumns(e, v, m)
	case First:
		return firsts(e, v, m)
	case Along:
		return turnedAlong(e, v, m)
	case Unread:
		return unread(e, v, m)
	case Swap, Reread:
		return exchanged(e, v, m)
	}
	return v, false
}

// rolled rolls an axis.
func rolled(e *Editor, v program.Var, m Map) (program.Var, bool) {
	n := v.Shape[m.Axis]
	by := ((m.By % max(n, 1)) + n) % max(n, 1)
	if n < 2 || by == 0 {
		return v, false
	}
	return e.Cat(m.Axis, e.Slice(v, m.Axis, n-by, n), e.Slice(v, m.Axis, 0, n-by)), e.Err() == nil
}

// reversed reverses an axis, or its blocks.
func reversed(e *Editor, v program.Var, m Map) (program.Var, bool) {
	n := v.Shape[m.Axis]
	if m.By > 0 {
		if n%m.By != 0 || n <= m.By {
			return v, false
		}
		w, ok := e.Mapped(e.Split(v, m.Axis, n/m.By), Map{Kind: Reverse, Axis: m.Axis})
		if !ok {
			return v, false
		}
		return e.Reshape(w, v.Shape...), e.Err() == nil
	}
	if n < 2 {
		return v, false
	}
	out := program.Var{Step: v.Step, Off: v.Off + (n-1)*v.Stride[m.Axis], Shape: v.Shape, Stride: slices.Clone(v.Stride)}
	out.Stride[m.Axis] = -out.Stride[m.Axis]
	return e.Cat(m.Axis, out), true
}

// flipped reverses each block of an axis.
func flipped(e *Editor, v program.Var, m Map) (program.Var, bool) {
	n := v.Shape[m.Axis]
	if m.By < 2 || n%m.By != 0 || n == m.By {
		return v, false
	}
	w, ok := e.Mapped(e.Split(v, m.Axis, n/m.By), Map{Kind: Reverse, Axis: m.Axis + 1})
	if !ok {
		return v, false
	}
	return e.Reshape(w, v.Shape...), e.Err() == nil
}

// interleaved weaves each block of an axis.
func interleaved(e *Editor, v program.Var, m Map) (program.Var, bool) {
	n := v.Shape[m.Axis]
	block := m.By
	if block == 0 {
		block = n
	}
	if m.N < 2 || block <= m.N || n%block != 0 || block%m.N != 0 {
		return v, false
	}
	w := exchangedIn(e.Split(e.Split(v, m.Axis, n/block), m.Axis+1, block/m.N), m.Axis+1, m.Axis+2)
	return e.Reshape(e.Cat(m.Axis, w), v.Shape...), e.Err() == nil
}

// byColumns takes the blocks of an axis column by column.
func byColumns(e *Editor, v program.Var, m Map) (program.Var, bool) {
	n := v.Shape[m.Axis]
	if m.By < 1 || m.N < 2 || n%(m.By*m.N) != 0 || n == m.By*m.N {
		return v, false
	}
	w := exchangedIn(e.Split(e.Split(v, m.Axis, n/m.By/m.N), m.Axis+1, m.N), m.Axis, m.Axis+1)
	return e.Reshape(e.Cat(m.Axis, w), v.Shape...), e.Err() == nil
}

// firsts reads one index of an axis for all.
func firsts(e *Editor, v program.Var, m Map) (program.Var, bool) {
	n := v.Shape[m.Axis]
	if n < 2 || v.Stride[m.Axis] == 0 || m.By >= n {
		return v, false
	}
	out := program.Var{Step: v.Step, Off: v.Off + m.By*v.Stride[m.Axis], Shape: v.Shape, Stride: slices.Clone(v.Stride)}
	out.Stride[m.Axis] = 0
	return out, true
}

// turnedAlong varies along another axis.
func turnedAlong(e *Editor, v program.Var, m Map) (program.Var, bool) {
	if !along(v, m.Axis, m.Other) {
		return v, false
	}
	w := program.Var{Step: v.Step, Off: v.Off, Shape: slices.Clone(v.Shape), Stride: slices.Clone(v.Stride)}
	w.Stride[m.Axis], w.Stride[m.Other] = 0, v.Stride[m.Axis]
	return w, true
}

// unread reads with the sizes of two axes exchanged, and exchanges them.
func unread(e *Editor, v program.Var, m Map) (program.Var, bool) {
	n := v.Shape[m.Axis]
	if n < 2 || v.Shape[m.Other] < 2 || m.Axis == m.Other || m.By > 0 {
		return v, false
	}
	w := e.Reshape(e.Cat(m.Axis, v), exchangedIn(v, m.Axis, m.Other).Shape...)
	return exchangedIn(w, m.Axis, m.Other), e.Err() == nil
}

// exchangedIn is a view with two axes exchanged; what an editor gives after an error has fewer axes, and stays.
func exchangedIn(v program.Var, a, b int) program.Var {
	if max(a, b) >= len(v.Shape) {
		return v
	}
	v.Shape, v.Stride = slices.Clone(v.Shape), slices.Clone(v.Stride)
	v.Shape[a], v.Shape[b] = v.Shape[b], v.Shape[a]
	v.Stride[a], v.Stride[b] = v.Stride[b], v.Stride[a]
	return v
}

// exchanged exchanges two axes.
func exchanged(e *Editor, v program.Var, m Map) (program.Var, bool) {
	n := v.Shape[m.Axis]
	if last := v.Shape[m.Other]; m.Kind == Reread && m.By > 0 {
		if n < 2 || last%m.By != 0 || last == m.By || m.Axis >= m.Other {
			return v, false
		}
		split := e.Split(v, m.Other, last/m.By)
		m.By = 0
		w, ok := e.Mapped(split, m)
		if !ok {
			return v, false
		}
		return e.Reshape(w, v.Shape...), e.Err() == nil
	}
	if m.Axis == m.Other || m.Kind == Swap && n != v.Shape[m.Other] || n < 2 || v.Shape[m.Other] < 2 {
		return v, false
	}
	w := exchangedIn(v, m.Axis, m.Other)
	if m.Kind == Swap {
		return w, true
	}
	once := slices.Clone(v.Shape) // an axis along which it is repeated stays so
	for a := range w.Shape {
		if a != m.Axis && a != m.Other && w.Stride[a] == 0 {
			w.Shape[a], once[a] = 1, 1
		}
	}
	return e.Reshape(e.Cat(m.Axis, w), once...).Expanded(v.Shape), e.Err() == nil
}
