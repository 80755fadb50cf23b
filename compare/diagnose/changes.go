package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// changed is a weight whose rows are changed as they are read.
type changed struct {
	program.Rows
	row func(x []float64)
}

func (w changed) Row(dst []float64, i int) error {
	err := w.Rows.Row(dst, i)
	w.row(dst)
	return err
}

// Product is that of the weight: a changed one is multiplied in the same way.
func (w changed) Product(x, bound []float64) program.Product {
	_, n := w.Size()
	p := program.ProductOf(w.Rows, x, bound)
	p.W = changed{p.W, func(row []float64) { w.row(row[:n]) }}
	return p
}

// reordered is a weight with its rows in another order.
type reordered struct {
	program.Rows
	at func(i int) int
}

func (w reordered) Row(dst []float64, i int) error { return w.Rows.Row(dst, w.at(i)) }

// Product is that of the weight.
func (w reordered) Product(x, bound []float64) program.Product {
	p := program.ProductOf(w.Rows, x, bound)
	p.W = reordered{p.W, w.at}
	return p
}

// transposed is a weight, held whole, that is read column by column.
type transposed struct {
	rows, cols int // what it has when it is transposed
	data       []float64
}

func (w *transposed) Size() (rows, cols int) { return w.rows, w.cols }

func (w *transposed) Row(dst []float64, i int) error {
	for j := range dst {
		dst[j] = w.data[j*w.rows+i]
	}
	return nil
}

// maxHeld bounds the elements of a weight that is held whole.
const maxHeld = 1 << 24

// transpose is a square weight transposed: its shape does not tell.
func transpose(w program.Rows) program.Rows {
	if rows, cols := w.Size(); rows != cols {
		return nil
	}
	return turned(w)
}

// turned is a weight of any shape transposed; nil for a vector, and for one that is too large to be held.
func turned(w program.Rows) program.Rows {
	rows, cols := w.Size()
	if rows < 2 || cols < 2 || rows*cols > maxHeld {
		return nil
	}
	t := &transposed{cols, rows, make([]float64, rows*cols)}
	for i := range rows {
		if w.Row(t.data[i*cols:][:cols], i) != nil {
			return nil
		}
	}
	return t
}

// reshaped is a weight, held whole, of which the transposed is read row by row in its own shape.
type reshaped struct {
	rows, cols int
	data       []float64
}

func (w *reshaped) Size() (rows, cols int) { return w.rows, w.cols }

func (w *reshaped) Row(dst []float64, i int) error {
	for j := range dst {
		at := i*w.cols + j // of the transposed: cols rows
		dst[j] = w.data[at%w.rows*w.cols+at/w.rows]
	}
	return nil
}

func reshape(w program.Rows) program.Rows {
	rows, cols := w.Size()
	if rows < 2 || cols < 2 || rows == cols || rows*cols > maxHeld {
		return nil
	}
	r := &reshaped{rows, cols, make([]float64, rows*cols)}
	for i := range rows {
		if w.Row(r.data[i*cols:][:cols], i) != nil {
			return nil
		}
	}
	return r
}

// change is what may have become of a weight; make returns nil where it has no such.
type change struct {
	words string
	make  func(w program.Rows, model hooks.DType) program.Rows

	headless string // the words of a weight whose rows are none of heads, where they are others
}

// each changes elements one by one, and stores them in the model's dtype, or in float32.
func each(words string, stored bool, f func(x float64) float64) change {
	return change{words: words, make: func(w program.Rows, model hooks.DType) program.Rows {
		if !stored {
			model = hooks.F32
		}
		return changed{w, func(x []float64) {
			for i := range x {
				x[i] = floats.Round(model, f(x[i]))
			}
		}}
	}}
}

// quantised rounds each group of n elements of a row, 0 for all, to whole numbers up to most times a step of its own.
func quantised(words string, n int, most float64) change {
	return change{words: words, make: func(w program.Rows, model hooks.DType) program.Rows {
		group := n
		if _, cols := w.Size(); n == 0 {
			group = cols
		} else if cols%n != 0 || cols == n { // that is a row
			return nil
		}
		return changed{w, func(row []float64) {
			for at := 0; at < len(row); at += group {
				g := row[at:][:group]
				top := 0.0
				for _, x := range g {
					top = max(top, math.Abs(x))
				}
				step := float64(float32(top / most))
				for i, x := range g {
					if step > 0 {
						g[i] = floats.Round(model, float64(float32(math.RoundToEven(float64(float32(x/step)))*step)))
					}
				}
			}
		}}
	}}
}

// ranged rounds each group of n elements of a row, 0 for all, to steps between its least and its greatest number, with a zero point that
// is off by some steps.
func ranged(words string, n int, most, off float64) change {
	return change{words: words, make: func(w program.Rows, model hooks.DType) program.Rows {
		group := n
		if _, cols := w.Size(); n == 0 {
			group = cols
		} else if cols%n != 0 || cols == n {
			return nil
		}
		return changed{w, func(row []float64) {
			for at := 0; at < len(row); at += group {
				g := row[at:][:group]
				low, high := slices.Min(g), slices.Max(g)
				step := float64(float32(float64(float32(high-low)) / most))
				if !(step > 0) {
					continue
				}
				zero := math.RoundToEven(float64(float32(-low / step)))
				for i, x := range g {
					q := min(max(math.RoundToEven(float64(float32(x/step)))+zero, 0), most)
					g[i] = floats.Round(model, float64(float32((q-zero-off)*step)))
				}
			}
		}}
	}}
}

// narrowed rounds to a narrower dtype.
func narrowed(d hooks.DType) change {
	return change{words: "is rounded to " + d.String(), make: func(w program.Rows, model hooks.DType) program.Rows {
		if model == d {
			return nil
		}
		return changed{w, func(x []float64) {
			for i := range x {
				x[i] = floats.Round(d, x[i])
			}
		}}
	}}
}

// columns keeps one of n parts of the columns, or all but that: what a shard has, or lacks.
func columns(k, n int, keep bool) change {
	words := fmt.Sprintf("has part %d of %d of its columns alone: the others are 0", k+1, n)
	if !keep {
		words = fmt.Sprintf("lacks part %d of %d of its columns: they are 0", k+1, n)
	}
	return change{words: words, make: func(w program.Rows, _ hooks.DType) program.Rows {
		_, cols := w.Size()
		if cols%n != 0 || cols == n {
			return nil
		}
		return changed{w, func(row []float64) {
			for i := range row {
				if (i*n/cols == k) != keep {
					row[i] = 0
				}
			}
		}}
	}}
}

// woven reads blocks of rows as n rows of block/n, columns first: the rows of heads for the other rotary embedding.
func woven(block, n int) change {
	inner := block / n
	from := func(at int) int { return at%n*inner + at/n }
	var first []string
	for at := range min(block, 8) {
		first = append(first, fmt.Sprint(from(at)))
	}
	if block > 8 {
		first = append(first, "...")
	}
	return change{
		fmt.Sprintf("has the rows of each head of %d in the order of the other rotary embedding (%d × %d)", block, n, inner),
		func(w program.Rows, _ hooks.DType) program.Rows {
			if rows, _ := w.Size(); rows%block != 0 {
				return nil
			}
			return reordered{w, func(i int) int {
				at := i % block
				return i - at + from(at)
			}}
		},
		fmt.Sprintf("has each %d rows in another order, %s: read as %d × %d with its axes exchanged, as codes of few bits are packed", block, strings.Join(first, ", "), inner, n),
	}
}

// wovenVector reads blocks of a vector as woven reads rows: the weight of a norm of heads for the other rotary embedding.
func wovenVector(block, n int) change {
	inner := block / n
	return change{
		words: fmt.Sprintf("has the channels of each head of %d in the order of the other rotary embedding (%d × %d)", block, n, inner),
		make: func(w program.Rows, _ hooks.DType) program.Rows {
			if rows, cols := w.Size(); rows != 1 || cols%block != 0 {
				return nil
			}
			return changed{w, func(x []float64) {
				own := slices.Clone(x)
				for i := range x {
					at := i % block
					x[i] = own[i-at+at%n*inner+at/n]
				}
			}}
		},
	}
}

// A weight that was not loaded is what its memory was made with.
var (
	zeroed = each("is 0", true, func(float64) float64 { return 0 })
	unit   = each("is 1", true, func(float64) float64 { return 1 })
)

// changes are those that a weight is tried with.
func (s *search) changes() []change {
	all := []change{
		{words: "is reshaped, not transposed: its file has rows and columns exchanged", make: func(w program.Rows, _ hooks.DType) program.Rows { return reshape(w) }},
		each("has 0 in place of what is negative", true, func(x float64) float64 { return max(0, x) }),
		each("has lost the sign of what is negative", true, math.Abs),
		each("is rounded to float8 (e4m3)", true, func(x float64) float64 { return float64(floats.FromF8E4M3(floats.F8E4M3(float32(x)))) }),
		each("is rounded to float8 (e5m2)", true, func(x float64) float64 { return float64(floats.FromF8E5M2(floats.F8E5M2(float32(x)))) }),
		{words: "is transposed", make: func(w program.Rows, _ hooks.DType) program.Rows { return transpose(w) }},
		each("is taken as 1+w", false, func(x float64) float64 { return 1 + x }),
		each("has 1 added, as one that is stored with the 1", true, func(x float64) float64 { return 1 + x }),
		each("has 1 taken off", true, func(x float64) float64 { return x - 1 }),
		each("has the opposite sign", true, func(x float64) float64 { return -x }),
		zeroed, unit,
		each("is its reciprocal", true, func(x float64) float64 { return 1 / x }),
		narrowed(hooks.BF16), narrowed(hooks.F16),
		quantised("is rounded to 8 bits by row", 0, 127), quantised("is rounded to 4 bits by row", 0, 7),
	}
	for _, group := range []int{8, 16, 32, 64, 128} {
		for _, most := range []struct {
			bits int
			step float64
		}{{8, 127}, {4, 7}} {
			all = append(all, quantised(fmt.Sprintf("is rounded to %d bits in groups of %d", most.bits, group), group, most.step))
		}
	}
	for _, bits := range []int{4, 8} {
		for _, group := range []int{8, 16, 32, 64, 128, 0} {
			for _, off := range []float64{0, 1, -1} {
				words := fmt.Sprintf("is rounded to %d bits in groups of %d, between the least and the greatest number", bits, group)
				if group == 0 {
					words = fmt.Sprintf("is rounded to %d bits by row, between the least and the greatest number", bits)
				}
				if off != 0 {
					words += fmt.Sprintf(", with zero points that are off by %+g", off)
				}
				all = append(all, ranged(words, group, float64(int(1)<<bits-1), off))
			}
		}
	}
	for _, n := range []int{2, 4} {
		for k := range n {
			all = append(all, columns(k, n, true))
			if n > 2 {
				all = append(all, columns(k, n, false))
			}
		}
	}
	c := s.m.List.Config
	for _, n := range []int{2, c.HeadDim / 2} {
		if n > 1 && c.HeadDim%n == 0 && n < c.HeadDim {
			all = append(all, woven(c.HeadDim, n), wovenVector(c.HeadDim, n))
		}
	}
	for _, n := range []int{2, 4, 8} {
		all = append(all, firstOf(n))
	}
	all = append(all, tiled()...)
	all = append(append(all, codings()...), misread()...)
	var by []number
	for _, n := range []float64{2, 0.5, 4, 0.25, 8, 0.125} {
		by = append(by, number{value: n})
	}
	for _, n := range s.numbers {
		if n.value != 1 && !slices.ContainsFunc(by, func(o number) bool {
			return same(o.value, n.value) && o.words == "" && !strings.HasPrefix(n.words, "√hidden")
		}) {
			by = append(by, n)
		}
	}
	for _, n := range by {
		words := "is multiplied by " + short(n.value)
		if called := s.called(n.value, 1, ""); called != "" {
			words += " (" + called + ")"
		}
		all = append(all, each(words, true, func(x float64) float64 { return x * float64(float32(n.value)) }))
	}
	return all
}
