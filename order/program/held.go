package program

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/products"
)

// The bounds of a product take as long as its values, and in 16 bits nearly every element of an engine is the value, rounded: no bound takes
// that from it. So where a call has what the engine holds, a product with a large weight gives
//
//   - the bound of every element that is not the rounded value, or not finite;
//   - the bounds of a sample, for what is said of all of them together;
//   - of every other element a ceiling, which its bound is not above.
//
// A ceiling takes ‖t‖₂ of the terms t = w·x to be no more than max|w|·‖x‖₂.

// Held is what an engine has of the result of a program.
type Held struct {
	Data  []float64
	DType hooks.DType
	// Alone: all that is asked is whether each element is what the engine has. A large product has the bounds of those that are not the
	// rounded value, and +∞ as that of any other; what is no product has no bounds at all.
	Alone bool
}

const (
	// sampledNumbers is how many numbers a weight has at least whose product is sampled.
	sampledNumbers = 1 << 20
	// digitsHeld is the most binary digits of a dtype in which engines have most elements to the bit.
	digitsHeld = 11
	// sampleOf is how many blocks of columns there are to each that is in the sample: of the first so many it is the first, of the next the
	// second, so that no regular structure of columns is in it whole, or left out.
	sampleOf = 8
	// fewOpen is how many elements of a block have their bounds one by one: another number takes other time, and gives the same.
	fewOpen = 8
	// slack is more than what the ceiling's own roundings take from it.
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
	return h != nil && floats.Precision(h.DType) <= digitsHeld && t.all*t.n >= sampledNumbers && len(h.Data) == t.tokens*t.all &&
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

// against finishes the sums of a tile of which the engine's result is known. It uses w up.
func (t *tile) against(out operand, from, count int) {
	largest := 0.0
	if !t.held.Alone {
		largest = products.Largest(t.w[:count*t.n])
	}
	for first := 0; first < count; first += products.Tile {
		rows := min(products.Tile, count-first)
		t.open = t.open[:0]
		for i := range t.tokens * rows {
			token, row := i/rows, first+i%rows
			sum, at := t.sums[token*count+row], token*t.all+from+row
			v, e := t.ceiling(sum, largest, token)
			if out.v[at], out.e[at] = v, e; v-v != 0 || t.held.Data[at] != floats.Round(t.held.DType, v) {
				t.open = append(t.open, i)
			}
		}
		w := t.w[first*t.n:]
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
				t.squares[i] = squares(w[i%rows*t.n:][:t.n], t.right.v[i/rows*t.n:][:t.n])
			}
		}
		for _, i := range t.open {
			token, row := i/rows, first+i%rows
			at := token*t.all + from + row
			out.v[at], out.e[at] = t.f.total(partial{sum: t.sums[token*count+row], squares: t.squares[i]}, t.n)
		}
	}
}

// ceiling finishes a sum with what its bound is not above, of a tile whose largest number that is.
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

// squares is Σ (w·x)², to the bit as it is of many rows.
func squares(w, x []float64) float64 {
	var s float64
	for k, v := range w {
		s += float64(float64(v*v) * float64(x[k]*x[k]))
	}
	return s
}
