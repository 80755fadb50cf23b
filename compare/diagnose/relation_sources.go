package diagnose

import (
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// rowSources are the rows that the rows of a tensor are equal to, by the row of the tensor.
type rowSources map[int]rowSource

// rowSource is a row of a captured tensor, by its place along the axes before the last one.
type rowSource struct {
	of    order.Node
	shape []int
	row   int
}

// spots lists, for each axis, the indexes of the sources of the first entry's rows, in the order in which [spotsOf] lists the indexes of these rows. An axis
// in which all rows keep their index is left out. The result is empty if the rows come from several tensors, if an index has sources at several indexes, or
// if an axis has more than [mostIndexes] of them.
func (from rowSources) spots(s *search) Spots {
	own := s.m.List.Entries[s.first.Node.Entry].Axes
	shape := s.first.Program.Out.Shape
	var first *rowSource
	for _, r := range from {
		first = &r
		break
	}
	if first == nil || len(first.shape) != len(shape) || len(own) != len(shape) {
		return ""
	}
	letters := s.m.List.Entries[first.of.Entry].Axes
	var all []spot
	for a := range len(shape) - 1 {
		at := map[int]int{}
		for row, r := range from {
			is, k := index(first.shape, a, r.row), index(shape, a, row)
			if old, known := at[k]; r.of != first.of || known && old != is {
				return ""
			}
			at[k] = is
		}
		if len(letters) != len(shape) || letters[a] == own[a] && stays(at) {
			continue
		}
		if len(at) > mostIndexes {
			return ""
		}
		moved := spot{axis: a, counts: letters[a]}
		for k := range shape[a] {
			if is, has := at[k]; has {
				moved.at = append(moved.at, is)
			}
		}
		all = append(all, moved)
	}
	return makeSpots(all...)
}

// index is the index of a row along an axis of a shape. The last axis of the shape is along the row.
func index(shape []int, axis, row int) int {
	return row / program.Size(shape[axis+1:len(shape)-1]) % shape[axis]
}

// stays reports whether each index is its own source.
func stays(at map[int]int) bool {
	for k, is := range at {
		if k != is {
			return false
		}
	}
	return true
}
