// Package products has the dot products of the order's programs: of every row of a matrix with every row of another, in
// float64.
//
// One sum is taken in one order, whatever computes it: from its first product to its last, a product rounded before it is
// added. So results are the same bits on every processor. Vectors hold several sums side by side, never parts of one.
package products

import (
	"math"
	"math/bits"
)

// Tile is how many rows of a matrix a processor multiplies at once.
const Tile = 8

// Right is the right-hand side of products: rows of n numbers, laid out for the processor.
type Right struct {
	n, rows int
	x       []float64 // row after row
	lanes   []float64 // the same in groups of [width] rows: number k of all rows of a group, then number k+1; zeros fill the last group
	digits  int       // see [Right.exact]
}

// NewRight lays out rows of n numbers. It keeps x, which must not change.
func NewRight(x []float64, n int) *Right {
	r := &Right{n: n, rows: len(x) / max(n, 1), x: x}
	if width == 0 || n == 0 {
		return r
	}
	groups := (r.rows + width - 1) / width
	r.lanes = make([]float64, groups*width*n)
	for i := range r.rows {
		to := r.lanes[i/width*width*n+i%width:]
		for k, v := range x[i*n:][:n] {
			to[k*width] = v
		}
	}
	r.digits = Digits(x)
	return r
}

// farther is beyond every number of 32 bits, squared; see [Digits].
const farther = 400

// inexact is more binary digits than a float64 has.
const inexact = 64

// Digits is how many binary digits the numbers of x have at most, beginning with the first that is not 0: 8 for bfloat16, 11 for
// float16, 24 for float32. It is more than a float64 has where a number is so large or so small that a product may leave
// the normal numbers.
func Digits(x []float64) int {
	all, some := uint64(0), false // the digits of all numbers on top of each other
	for _, v := range x {
		b := math.Float64bits(v)
		if exponent := int(b>>52&0x7ff) - 1023; exponent >= -farther && exponent <= farther {
			all, some = all|b, true
		} else if b<<1 != 0 && exponent != 1024 { // zero; infinite or NaN: no product of these is rounded
			return inexact
		}
	}
	if !some {
		return 0
	}
	return 53 - min(bits.TrailingZeros64(all), 52)
}

// exact reports whether no product with numbers of so many digits is rounded: multiplying and adding at once then gives the same
// bits.
func (r *Right) exact(digits int) bool { return digits > 0 && digits+r.digits <= 53 }

// Dots computes the products of count rows of w with all rows of r, the first row of r first. w has room for whole tiles of [Tile] rows; rows
// from count on are ignored. digits is the largest number of digits in w, or 0 if unknown.
func (r *Right) Dots(sums, w []float64, count, digits int) {
	switch {
	case r.n == 0:
		clear(sums[:count*r.rows])
	case width == 0:
		r.plain(sums, w, count)
	default:
		r.vectors(sums, w[:room(count)*r.n], count, r.exact(digits))
	}
}

// room is how many rows there is to be room for, for so many.
func room(count int) int { return (count + Tile - 1) / Tile * Tile }

// vectors takes a group of rows of r at a time, and all of w with it.
func (r *Right) vectors(sums, w []float64, count int, exact bool) {
	var out [Tile * maxWidth]float64
	for from := 0; from < r.rows; from += width {
		group, lanes := &r.lanes[from*r.n], min(width, r.rows-from)
		for first := 0; first < count; first += Tile {
			tile(&out, &w[first*r.n], r.n, group, exact)
			for i := range lanes {
				to := sums[(from+i)*count+first:]
				for k := range min(Tile, count-first) {
					to[k] = out[k*width+i]
				}
			}
		}
	}
}

// plain is Dots without vectors.
func (r *Right) plain(sums, w []float64, count int) {
	n := r.n
	row := func(m []float64, i int) []float64 { return m[i*n:][:n] }
	t := 0
	for ; t+4 <= r.rows; t += 4 {
		for k := range count {
			s := four(row(w, k), row(r.x, t), row(r.x, t+1), row(r.x, t+2), row(r.x, t+3))
			sums[t*count+k], sums[(t+1)*count+k], sums[(t+2)*count+k], sums[(t+3)*count+k] = s[0], s[1], s[2], s[3]
		}
	}
	for ; t < r.rows; t++ {
		k := 0
		for ; k+4 <= count; k += 4 {
			*(*[4]float64)(sums[t*count+k:]) = four(row(r.x, t), row(w, k), row(w, k+1), row(w, k+2), row(w, k+3))
		}
		for ; k < count; k++ {
			sums[t*count+k] = Dot(row(w, k), row(r.x, t))
		}
	}
}

// four computes the dot products of v with four rows. One sum has to wait for its last addition; four at a time keep a
// processor busy. A product is converted so that no compiler fuses it with the addition.
func four(v, a, b, c, d []float64) [4]float64 {
	n := len(v)
	a, b, c, d = a[:n], b[:n], c[:n], d[:n]
	var sa, sb, sc, sd float64
	for k, v := range v {
		sa += float64(v * a[k])
		sb += float64(v * b[k])
		sc += float64(v * c[k])
		sd += float64(v * d[k])
	}
	return [4]float64{sa, sb, sc, sd}
}

// Dot is the product of two rows of one length.
func Dot(v, a []float64) float64 {
	a = a[:len(v)]
	var s float64
	for k, v := range v {
		s += float64(v * a[k])
	}
	return s
}

// Square replaces numbers by their squares.
func Square(x []float64) {
	x = x[squareFirst(x):]
	for i, v := range x {
		x[i] = v * v
	}
}

// Largest is the largest |x|; 0 of nothing. Of NaN it may say anything.
func Largest(x []float64) float64 {
	most, first := largestFirst(x)
	for _, v := range x[first:] {
		most = max(most, math.Abs(v))
	}
	return most
}
