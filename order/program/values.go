package program

import (
	"math"
	"slices"
)

// Value is a tensor in float64, row-major. Bound, where it is not nil, says for each element how far from Data a
// correct computation may be; see [Arith].
type Value struct {
	Shape       []int
	Data, Bound []float64
	// Followed is how many elements are an engine's own choice where bounds allow for several, see [Call].
	Followed int
	// Columns is the number of columns of Data, or 0. If Columns is not 0, Bound has ceilings as well as bounds: see
	// [Held] and [Value.Sampled].
	Columns int
	// Terms describe the terms of a value that is a sum; nil for any other value.
	Terms *Terms
}

// Terms are those of a sum, by element: Count of them are not 0, Most is the larger of the sums of the positive and of the negative ones, and
// Unit is half a unit of the dtype in which they are added.
type Terms struct {
	Count []int
	Most  []float64
	Unit  float64
}

// Rows is a weight, read row by row so that no table is held whole. A vector is one row.
type Rows interface {
	Size() (rows, cols int)
	// Row writes row i to dst, which has cols elements. It may be called from several goroutines.
	Row(dst []float64, i int) error
}

// A Spanner is a weight that reads consecutive rows faster together than row by row.
type Spanner interface {
	Rows
	// Span writes so many rows to dst, the first at from.
	Span(dst []float64, from, count int) error
}

// readRows writes rows of a weight to dst.
func readRows(w Rows, dst []float64, from, count int) error {
	_, n := w.Size()
	if s, ok := w.(Spanner); ok && count > 1 {
		return s.Span(dst[:count*n], from, count)
	}
	for k := range count {
		if err := w.Row(dst[k*n:][:n], from+k); err != nil {
			return err
		}
	}
	return nil
}

// A Multiplier is a weight whose engine changes the weight or the other operand before the product. For example, an
// engine with weights of codes rounds the operand. x holds whole rows of the operand, and Product may overwrite x;
// bound is as in [Value], and nil without bounds.
type Multiplier interface {
	Rows
	Product(x, bound []float64) Product
}

// Product has the two factors that an engine multiplies. Rows of W and of X may be longer than the weight's rows: the
// extra elements belong to the engine, such as sums of the operand for the offsets of codes.
type Product struct {
	W        Rows
	X, Bound []float64
	// Sum returns v = Σ w·x of two rows as the engine rounds it, and e, the largest distance from v that an operand
	// within bound can cause. bound may be nil. A nil Sum stands for one sum in float32, in any order.
	Sum func(w, x, bound []float64) (v, e float64)
}

// ProductOf is what the engine of a weight multiplies. x and bound may be written to.
func ProductOf(w Rows, x, bound []float64) Product {
	if m, ok := w.(Multiplier); ok {
		return m.Product(x, bound)
	}
	return Product{W: w, X: x, Bound: bound}
}

// Call is what one evaluation is given.
type Call struct {
	Arith
	In    []Value
	W     []Rows
	Shape []int // of the result
	Some  *Some // of the result; nil for all of it
	// Own is an engine's result, for a program whose results are indexes from a [Rank]. The evaluator takes over an
	// index of the engine wherever the bounds of the ranked values allow the index.
	Own []float64
	// Held lets bounds be computed where they decide something; nil: everywhere.
	Held *Held
	// Open leaves a choice open where the bounds allow several: the result's bounds then cover every possible choice.
	// Without Open the evaluator makes the choice.
	Open bool
}

// Size is the number of elements of a shape.
func Size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

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

// together adds to the bound of the first operand of an addition: in the result, the terms of both operands may be
// added in any order. An operand that is not a sum counts as one term. from is the first element of the block.
//
// For k terms in total, k−2 intermediate sums have an error of u·M each, where M is at most the larger of the sums of
// the positive and of the negative terms of both operands; the last rounding belongs to the step. The operand was
// rounded once, and the engine's sum was not: u·|x|. Higham, Accuracy and Stability of Numerical Algorithms, section
// 4.2. A term, or an intermediate sum, may be subnormal and flushed to zero: at most once per term.
func (r *run) together(s *Step, x, y operand, from int) operand {
	a, b := r.termsOf(s, 0), r.termsOf(s, 1)
	if a == nil && b == nil {
		return x
	}
	out := operand{v: x.v, e: r.zeros(len(x.e))}
	for i, e := range x.e {
		m, k, u, once := a.at(s, 0, from+i, x.v[i])
		n, l, w, other := b.at(s, 1, from+i, y.v[i])
		if u = max(u, w); k+l > 2 {
			e += float64(k+l-2)*u*(m+n)*(1+float64(k+l)*u) + once + other
		}
		if k+l > 1 {
			e += float64(k+l) * normal32
		}
		out.e[i] = e
	}
	return out
}

// termsOf are those of an operand of an addition: of a leaf that is read row by row.
func (r *run) termsOf(s *Step, k int) *Terms {
	v := s.Args[k]
	t := r.terms[v.Step]
	if t == nil || !v.Plain() || v.Off+Size(s.Shape) > len(t.Count) || Size(v.Shape) != Size(s.Shape) {
		return nil
	}
	return t
}

// at is what an element of an operand has: the sum of its terms' magnitudes at most, their number, the unit, and the rounding of the operand.
func (t *Terms) at(s *Step, arg, i int, x float64) (most float64, count int, unit, once float64) {
	if t == nil {
		return math.Abs(x), 1, 0, 0
	}
	i += s.Args[arg].Off
	if t.Count[i] > 1 {
		once = t.Unit * math.Abs(x)
	}
	return t.Most[i], t.Count[i], t.Unit, once
}
