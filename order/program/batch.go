package program

import (
	"slices"

	"github.com/tracediff/tracediff/internal/products"
)

// batch collects rows that are multiplied with the same rows: queries that read the same keys. Numbers and bounds are finite.
type batch struct {
	finisher
	productSums
	right    laidRows // that the rows are multiplied with
	n, inner int      // the length of a row, and how many rows each is multiplied with
	xe, ye   bool     // x has bounds other than 0; y has
	x, e     []float64
	out      []operand
}

// laidRows are rows of an operand, laid out to be multiplied.
type laidRows struct {
	y          operand
	step       int             // from one row to the next
	at         int             // where the first of them is
	laid       bool            // there are such rows
	values     *products.Right // the rows at a place
	size       *products.Right // squared, or in absolute values where bounds are rigorous
	bound, far *products.Right // the bounds of the rows, and their absolute values with the bounds added
}

// productSums are those of each product of a batch: Σ x·y, Σ (x·y)² or Σ |x·y|, and two parts of how far the bounds move it, see [spread].
type productSums struct{ sums, sizes, byY, byX []float64 }

// newBatch is a batch of rows of n numbers, each multiplied with so many of another operand, a step apart. x is the operand that has the rows.
func newBatch(f finisher, n, inner int, x, y operand, step int) *batch {
	b := &batch{finisher: f, n: n, inner: inner, right: laidRows{y: y, step: step}, xe: f.Bounds && !zero(x.e), ye: f.Bounds && !zero(y.e)}
	room := func(needed bool) []float64 {
		if !needed {
			return nil
		}
		return make([]float64, products.Tile*inner)
	}
	b.x, b.sums, b.sizes = make([]float64, products.Tile*n), room(true), room(f.Bounds)
	b.byY, b.byX = room(b.ye), room(b.xe)
	if b.xe {
		b.e = make([]float64, products.Tile*n)
	}
	return b
}

// add collects a row x, the place of the rows that multiply x, and the room for the results. The products of a row of zeros, such as padding, are 0.
func (b *batch) add(x operand, at int, out operand) {
	if zero(x.v) && zero(x.e) {
		v, e := b.total(partial{}, b.n)
		fill(out.v, v)
		fill(out.e, e)
		return
	}
	if !b.right.laid || at != b.right.at || len(b.out) == products.Tile {
		b.finish()
	}
	if !b.right.laid || at != b.right.at {
		b.lay(at)
	}
	copy(b.x[len(b.out)*b.n:], x.v)
	if b.xe {
		copy(b.e[len(b.out)*b.n:], x.e)
	}
	b.out = append(b.out, out)
}

// lay lays out the rows from a place on.
func (b *batch) lay(at int) {
	b.right.at, b.right.laid = at, true
	gathered := func(from []float64) []float64 {
		rows := make([]float64, b.inner*b.n)
		for k := range b.inner {
			copy(rows[k*b.n:][:b.n], from[at+k*b.right.step:])
		}
		return rows
	}
	rows := gathered(b.right.y.v)
	b.right.values = products.NewRight(rows, b.n)
	if !b.Bounds {
		return
	}
	b.right.size = products.NewRight(b.sized(slices.Clone(rows)), b.n)
	if b.ye {
		b.right.bound = products.NewRight(gathered(b.right.y.e), b.n)
	}
	if b.xe {
		far := absolute(slices.Clone(rows))
		if b.ye {
			for k, e := range gathered(b.right.y.e) {
				far[k] += e
			}
		}
		b.right.far = products.NewRight(far, b.n)
	}
}

// sized replaces numbers by what the bound of a sum is made of: their squares, or their absolute values where it is rigorous.
func (b *batch) sized(x []float64) []float64 {
	if b.Rigorous {
		return absolute(x)
	}
	products.Square(x)
	return x
}

// finish multiplies what was collected.
func (b *batch) finish() {
	count := len(b.out)
	if count == 0 {
		return
	}
	x := b.x[:count*b.n]
	b.right.values.Dots(b.sums, b.x, count, products.Digits(x))
	if b.xe {
		b.right.far.Dots(b.byX, b.e, count, 0)
	}
	if b.ye {
		absolute(x)
		b.right.bound.Dots(b.byY, b.x, count, 0)
	}
	if b.Bounds {
		b.right.size.Dots(b.sizes, b.x, count, products.Digits(b.sized(x)))
	}
	for i, out := range b.out {
		for k := range out.v {
			v, e := b.total(b.partial(k*count+i), b.n)
			if out.v[k] = v; out.e != nil {
				out.e[k] = e
			}
		}
	}
	b.out = b.out[:0]
}

// partial is a product, not finished.
func (b *batch) partial(at int) partial {
	p := partial{sum: b.sums[at]}
	if !b.Bounds {
		return p
	}
	if b.Rigorous {
		p.abs = b.sizes[at]
	} else {
		p.squares = b.sizes[at]
	}
	if b.ye {
		p.e = b.byY[at]
	}
	if b.xe {
		p.e += b.byX[at]
	}
	return p
}

// finite reports whether all numbers of an operand and all bounds are.
func (o operand) finite() bool {
	for _, all := range [][]float64{o.v, o.e} {
		for _, v := range all {
			if v-v != 0 {
				return false
			}
		}
	}
	return true
}
