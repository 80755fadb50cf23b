package program

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/products"
)

// The bounds of a product take as long as its values, and nearly every element of an engine is the rounded value, which no bound takes from it, or so near that
// it is within any bound. So where a call has what the engine holds, a product with a large weight gives
//
//   - the bound of every element that is not finite, or neither the rounded value nor within a floor, which its bound is not below;
//   - the bounds of a sample, for what is said of all of them together;
//   - of every other element a ceiling, which its bound is not above.
//
// Of the terms t = w·x a ceiling takes ‖t‖₂ to be max|w|·‖x‖₂, and a floor takes the first terms for all.

// Held is what an engine has of the result of a program.
type Held struct {
	Data  []float64
	DType hooks.DType
	// Set by a caller that asks only whether each element equals the engine's. A rounded value of a large product
	// then has the bound +∞. Other elements have their bounds, or in float32 the difference from the engine's number,
	// if the bound is not below this difference. Other operations have no bounds.
	Alone bool
}

const (
	// sampledNumbers is how many numbers a weight has at least whose product is sampled.
	sampledNumbers = 1 << 20
	// sampleOf is how many blocks of columns there are to each that is in the sample: of the first so many it is the first, of the next the
	// second, so that no regular structure of columns is in it whole, or left out.
	sampleOf = 8
	// fewOpen is the number of elements of a block up to which bounds are computed one by one. The number changes the
	// time, not the results.
	fewOpen = 8
	// slack is more than the roundings of a ceiling or a floor change it by.
	slack = 1 + 0x1p-30
)

// SampledColumn reports whether a column is in the sample, as all of its block of products.Tile columns are.
func SampledColumn(column int) bool {
	block := column / products.Tile
	return block%sampleOf == block/sampleOf%sampleOf
}

// Sampled reports whether the bound of an element is one, and not a ceiling: of a value without Columns every one is.
func (v *Value) Sampled(i int) bool { return v.Columns == 0 || SampledColumn(i%v.Columns) }

// holds reports whether a product's bounds are those of [Held]: a plain sum in the program's own arithmetic.
func (t *tile) holds(h *Held) bool {
	return h != nil && h.DType != hooks.F64 && t.all*t.n >= sampledNumbers && len(h.Data) == t.tokens*t.all &&
		t.Bounds && !t.Rigorous && !t.Hull && t.Choices == nil && t.whole() && t.right.bounds == nil && t.bias == nil
}

// norms are ‖x‖₂ of the rows of x.
func norms(x []float64, n int) []float64 {
	var all []float64
	for at := 0; at+n <= len(x); at += n {
		all = append(all, math.Sqrt(products.Dot(x[at:][:n], x[at:][:n])))
	}
	return all
}

// against finishes the sums of a tile for which the engine's result is known. The numbers in t.w are overwritten.
func (t *tile) against(out operand, from, count int) {
	largest := 0.0
	if !t.held.Alone || t.single {
		largest = products.Largest(t.w[:count*t.n])
	}
	for first := 0; first < count; first += products.Tile {
		rows := min(products.Tile, count-first)
		w := t.w[first*t.n:]
		t.open = t.open[:0]
		for i := range t.tokens * rows {
			token, row := i/rows, first+i%rows
			sum, at := t.sums[token*count+row], token*t.all+from+row
			y, open := t.held.Data[at], false
			if t.single {
				out.v[at], out.e[at], open = t.inFloat32(sum, largest, token, y, w[i%rows*t.n:][:t.n], len(t.open) > fewOpen)
			} else {
				v, e := t.ceiling(sum, largest, token)
				out.v[at], out.e[at], open = v, e, v-v != 0 || y != floats.Round(t.held.DType, v)
			}
			if open {
				t.open = append(t.open, i)
			}
		}
		switch all := SampledColumn(from+first) && !t.held.Alone; {
		case all || len(t.open) > fewOpen:
			products.Square(w[:rows*t.n])
			t.right.squared.Dots(t.squares, w, rows, 2*t.digits)
			if all {
				t.open = t.open[:0]
				for i := range t.tokens * rows {
					t.open = append(t.open, i)
				}
			}
		default:
			for _, i := range t.open {
				t.squares[i], _ = squares(w[i%rows*t.n:][:t.n], t.right.v[i/rows*t.n:][:t.n], math.Inf(1))
			}
		}
		for _, i := range t.open {
			token, row := i/rows, first+i%rows
			at := token*t.all + from + row
			out.v[at], out.e[at] = t.f.totalOf(partial{sum: t.sums[token*count+row], squares: t.squares[i]}, t.n, t.factor)
		}
	}
}

// ceiling finishes a sum, and returns an upper limit for the bound. largest is the largest magnitude among the
// weights of the tile.
func (t *tile) ceiling(sum, largest float64, token int) (v, e float64) {
	if !t.held.Alone {
		size := largest*t.norms[token] + math.Abs(sum)
		return t.f.one(sum, (t.factor*size+t.f.underflow(t.n, size))*slack)
	}
	if t.f.round < None {
		sum = float64(float32(sum))
	}
	return t.f.narrow(sum), math.Inf(1)
}

// inFloat32 is ceiling for a result in float32. The engine has y. open reports that the sum needs its bound: the sum is near the largest numbers of float32, or
// y is not the rounded sum and the first terms of the sum do not make a bound that holds y; many: they are not asked, since all of the block get their bounds.
func (t *tile) inFloat32(sum, largest float64, token int, y float64, w []float64, many bool) (v, e float64, open bool) {
	v = float64(float32(sum))
	a := math.Abs(sum)
	if e = math.Inf(1); !t.held.Alone {
		// [finisher.bound] adds one rounding and the underflow, and [roundTo] rounds each end once more.
		size := largest*t.norms[token] + a
		e = (t.factor*size+float64(2*t.n)*normal32)*(slack*(1+4*unit32)) + 4*unit32*a + 2*normal32
		if !(a+e < overflow32/4) {
			return v, e, true
		}
	}
	if y == v {
		return v, e, v-v != 0
	}
	off := math.Abs(y - v)
	least := off/t.factor*slack - a // of ‖t‖₂, so that y is within the bound
	if y != float64(float32(y)) || !(a+off < overflow32/4) {
		return v, e, true
	}
	if least > 0 {
		if many || least > largest*t.norms[token]*slack {
			return v, e, true
		}
		if _, reached := squares(w, t.right.v[token*t.n:][:t.n], least*least*slack); !reached {
			return v, e, true
		}
	}
	if t.held.Alone {
		e = off
	}
	return v, e, false
}

// squares adds (w·x)² in the order of [products.Right.Dots], until the sum reaches enough. reached reports that the sum did.
func squares(w, x []float64, enough float64) (s float64, reached bool) {
	const some = 32
	for from := 0; from < len(w); from += some {
		to := min(from+some, len(w))
		x := x[from:to]
		for k, v := range w[from:to] {
			s += float64(float64(v*v) * float64(x[k]*x[k]))
		}
		if s >= enough {
			return s, true
		}
	}
	return s, false
}
