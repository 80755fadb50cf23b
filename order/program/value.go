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

// An OperandRounder is a weight whose engine rounds the other operand of its product first, as engines with weights of codes do. What it
// rounds are whole rows of that operand, in place; bound is as in [Value], and nil where there is none.
type OperandRounder interface {
	Rows
	RoundOperand(x, bound []float64)
}

// RoundOperand rounds the other operand of a product with w where w's engine does.
func RoundOperand(w Rows, x, bound []float64) {
	if r, ok := w.(OperandRounder); ok {
		r.RoundOperand(x, bound)
	}
}

// Call is what one evaluation is given.
type Call struct {
	Arith
	In    []Value
	W     []Rows
	Shape []int // of the result
	// Own is the result that an engine has, of a program whose result are indexes that a [Rank] chose. Where the bounds of what was
	// chosen from allow for it, it is the program's.
	Own []float64
	// Held lets bounds be computed where they decide something; nil: everywhere.
	Held *Held
	// Open: a choice that bounds leave open is: what it gives has the bounds of all that it may be. Else it is made.
	Open bool
}

// size is the number of elements of a shape.
func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
