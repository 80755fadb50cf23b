package program

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
