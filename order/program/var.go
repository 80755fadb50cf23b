package program

import "slices"

// Var is a step's result seen through a strided view. Views cost nothing and are no steps.
type Var struct {
	Step, Off     int
	Shape, Stride []int
}

// Last is the size of the last axis.
func (v Var) Last() int { return v.Shape[len(v.Shape)-1] }

// Result is the whole result of a step.
func (p *Program) Result(step int) Var {
	shape := p.Steps[step].Shape
	return Var{Step: step, Shape: shape, Stride: Contiguous(shape)}
}

// Contiguous are the strides of a row-major tensor.
func Contiguous(shape []int) []int {
	stride := make([]int, len(shape))
	n := 1
	for a := len(shape) - 1; a >= 0; a-- {
		stride[a] = n
		n *= shape[a]
	}
	return stride
}

// Plain reports whether the view's elements follow each other, row-major.
func (v Var) Plain() bool {
	n := 1
	for a := len(v.Shape) - 1; a >= 0; a-- {
		if v.Shape[a] != 1 && v.Stride[a] != n {
			return false
		}
		n *= v.Shape[a]
	}
	return true
}

// Same reports whether two variables are the same numbers in the same places.
func (v Var) Same(o Var) bool {
	return v.Step == o.Step && v.Off == o.Off && slices.Equal(v.Shape, o.Shape) && slices.Equal(v.Stride, o.Stride)
}

// row is where a row begins, a row being the last axis; index becomes its index along the other axes.
func (v Var) row(row int, index []int) int {
	at := v.Off
	for a := len(v.Shape) - 2; a >= 0; a-- {
		index[a] = row % v.Shape[a]
		row /= v.Shape[a]
		at += index[a] * v.Stride[a]
	}
	return at
}

// gather writes the rows [from, to) of a view to dst. has tells which rows src has; nil for all rows. For a row that src does not have dst keeps its numbers.
func gather(dst, src []float64, has *slots, v Var, from, to int) {
	if from == to || v.Last() == 0 { // an axis may be empty
		return
	}
	last := len(v.Shape) - 1
	n, s := v.Shape[last], v.Stride[last]
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
			at += v.Stride[a]
			if index[a] < v.Shape[a] {
				break
			}
			at -= index[a] * v.Stride[a]
			index[a] = 0
		}
	}
}

// Repeats reports whether a view has an element more than once.
func (v Var) Repeats() bool {
	for a, n := range v.Shape {
		if n > 1 && v.Stride[a] == 0 {
			return true
		}
	}
	return false
}
