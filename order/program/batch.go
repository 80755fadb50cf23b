package program

import (
	"slices"

	"github.com/tracediff/tracediff/internal/products"
)

// batch collects rows that are multiplied with the same rows, of numbers without bounds: queries that read the same keys.
type batch struct {
	finisher
	n, inner int // the length of a row, and how many rows each is multiplied with
	y        operand
	step     int // from one of these rows to the next
	at       int // where the first of them is

	values, squared *products.Right // these rows
	x, sums, sizes  []float64
	out             []operand
}

// add takes a row in, with the place of its results.
func (b *batch) add(x []float64, at int, out operand) {
	if b.values == nil || at != b.at || len(b.out) == products.Tile {
		b.finish()
	}
	if b.values == nil || at != b.at {
		b.lay(at)
	}
	copy(b.x[len(b.out)*b.n:], x)
	b.out = append(b.out, out)
}

// lay lays out the rows from a place on.
func (b *batch) lay(at int) {
	if b.x == nil {
		b.x = make([]float64, products.Tile*b.n)
		b.sums, b.sizes = make([]float64, products.Tile*b.inner), make([]float64, products.Tile*b.inner)
	}
	rows := make([]float64, b.inner*b.n)
	for k := range b.inner {
		copy(rows[k*b.n:][:b.n], b.y.v[at+k*b.step:])
	}
	b.at, b.values = at, products.NewRight(rows, b.n)
	if b.Bounds {
		squares := slices.Clone(rows)
		products.Square(squares)
		b.squared = products.NewRight(squares, b.n)
	}
}

// finish multiplies what was collected.
func (b *batch) finish() {
	count := len(b.out)
	if count == 0 {
		return
	}
	digits := products.Digits(b.x[:count*b.n])
	b.values.Dots(b.sums, b.x, count, digits)
	if b.Bounds {
		products.Square(b.x[:count*b.n])
		b.squared.Dots(b.sizes, b.x, count, products.Digits(b.x[:count*b.n]))
	}
	for i, out := range b.out {
		for k := range out.v {
			p := partial{sum: b.sums[k*count+i]}
			if b.Bounds {
				p.squares = b.sizes[k*count+i]
			}
			v, e := b.total(p, b.n)
			if out.v[k] = v; out.e != nil {
				out.e[k] = e
			}
		}
	}
	b.out = b.out[:0]
}
