package program

import "slices"

// Var is a step's result seen through a strided view. Views cost nothing and are no steps.
type Var struct {
	step, off     int
	shape, stride []int
}

// Shape is the shape of the view.
func (v Var) Shape() []int { return v.shape }

// Last is the size of the last axis.
func (v Var) Last() int { return v.shape[len(v.shape)-1] }

// contiguous are the strides of a row-major tensor.
func contiguous(shape []int) []int {
	stride := make([]int, len(shape))
	n := 1
	for a := len(shape) - 1; a >= 0; a-- {
		stride[a] = n
		n *= shape[a]
	}
	return stride
}

// plain reports whether the view's elements follow each other, row-major.
func (v Var) plain() bool {
	n := 1
	for a := len(v.shape) - 1; a >= 0; a-- {
		if v.shape[a] != 1 && v.stride[a] != n {
			return false
		}
		n *= v.shape[a]
	}
	return true
}

// sameView reports whether two variables are the same numbers in the same places.
func sameView(a, b Var) bool {
	return a.step == b.step && a.off == b.off && slices.Equal(a.shape, b.shape) && slices.Equal(a.stride, b.stride)
}

// row is where a row begins, a row being the last axis; index becomes its index along the other axes.
func (v Var) row(row int, index []int) int {
	at := v.off
	for a := len(v.shape) - 2; a >= 0; a-- {
		index[a] = row % v.shape[a]
		row /= v.shape[a]
		at += index[a] * v.stride[a]
	}
	return at
}

// gather writes the rows [from, to) of a view to dst. has tells which rows src has; nil for all rows. For a row that src does not have dst keeps its numbers.
func gather(dst, src []float64, has *slots, v Var, from, to int) {
	if from == to || v.Last() == 0 { // an axis may be empty
		return
	}
	last := len(v.shape) - 1
	n, s := v.shape[last], v.stride[last]
	index := make([]int, last)
	at := v.row(from, index)
	for r := from; r < to; r++ {
		row := dst[(r-from)*n:][:n]
		switch {
		case has != nil:
			has.row(row, src, at, s)
		case s == 1:
			copy(row, src[at:at+n])
		case s == 0:
			x := src[at]
			for i := range row {
				row[i] = x
			}
		default:
			for i, k := 0, at; i < n; i, k = i+1, k+s {
				row[i] = src[k]
			}
		}
		for a := last - 1; a >= 0; a-- {
			index[a]++
			at += v.stride[a]
			if index[a] < v.shape[a] {
				break
			}
			at -= index[a] * v.stride[a]
			index[a] = 0
		}
	}
}
