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
	// Columns, where it is not 0, is how many columns Data has, and Bound has ceilings beside bounds: see [Held] and [Value.Sampled].
	Columns int
	// Terms say of a value that is a sum what it is the sum of; nil for any other.
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

// A Spanner is a weight of which rows that follow each other are read for less together.
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

// A Multiplier is a weight whose engine multiplies something else than the weight and the other operand: one that rounds the operand, say, as
// engines with weights of codes do. x are whole rows of that operand, which it may write to; bound is as in [Value], and nil where there is none.
type Multiplier interface {
	Rows
	Product(x, bound []float64) Product
}

// Product is what an engine multiplies. Rows of W and of X may be longer than those of the weight: what stands behind these is the engine's own, as
// sums of the operand beside offsets of codes.
type Product struct {
	W        Rows
	X, Bound []float64
	// Sum is Σ w·x of two rows as the engine rounds it, and how far from it an operand within its bound, which may be nil, can bring it. nil: it is one
	// sum in float32, in any order.
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
	// Own is the result that an engine has, of a program whose result are indexes that a [Rank] chose. Where the bounds of what was
	// chosen from allow for it, it is the program's.
	Own []float64
	// Held lets bounds be computed where they decide something; nil: everywhere.
	Held *Held
	// Open: a choice that bounds leave open is: what it gives has the bounds of all that it may be. Else it is made.
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

// together gives the first operand of an addition the bound of a sum of which the operands' terms are added in any order. An operand that is
// no sum is one term. from is the first element of the block.
//
// Of k terms in all, k−2 sums on the way have an error of u·M each, where M is at most the larger of the sums of the positive and of the
// negative terms of both operands; the last rounding is that of the step. The operand itself was rounded once, which the engine's is not:
// u·|x|. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2. A term, or a sum
// of some, may be subnormal, and be taken for zero: each term once at most.
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
