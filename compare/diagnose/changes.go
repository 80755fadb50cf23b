package diagnose

import (
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
	is   Mistake // without the weight
	make func(w program.Rows, model hooks.DType) program.Rows

	headless Kind // the kind for a weight without heads; empty for the kind of is
}

// each changes elements one by one, and stores them in the model's dtype, or in float32.
func each(is Mistake, stored bool, f func(x float64) float64) change {
	return change{is: is, make: func(w program.Rows, model hooks.DType) program.Rows {
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
func quantised(is Mistake, n int, most float64) change {
	return change{is: is, make: func(w program.Rows, model hooks.DType) program.Rows {
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
func ranged(is Mistake, n int, most, off float64) change {
	return change{is: is, make: func(w program.Rows, model hooks.DType) program.Rows {
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
	return change{is: Mistake{Kind: "weight.rounded-dtype", DType: d}, make: func(w program.Rows, model hooks.DType) program.Rows {
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
	is := Mistake{Kind: "weight.one-shard", N: k, M: n}
	if !keep {
		is.Kind = "weight.shard-missing"
	}
	return change{is: is, make: func(w program.Rows, _ hooks.DType) program.Rows {
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
	return change{
		is: Mistake{Kind: "weight.rope-rows", N: block, M: n, K: inner}, headless: "weight.rows-interleaved",
		make: func(w program.Rows, _ hooks.DType) program.Rows {
			if rows, _ := w.Size(); rows%block != 0 {
				return nil
			}
			return reordered{w, func(i int) int {
				at := i % block
				return i - at + from(at)
			}}
		},
	}
}

// wovenVector reads blocks of a vector as woven reads rows: the weight of a norm of heads for the other rotary embedding.
func wovenVector(block, n int) change {
	inner := block / n
	return change{
		is: Mistake{Kind: "weight.rope-channels", N: block, M: n, K: inner},
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
	zeroed = each(Mistake{Kind: "weight.zero"}, true, func(float64) float64 { return 0 })
	unit   = each(Mistake{Kind: "weight.one"}, true, func(float64) float64 { return 1 })
)

// rounded is the mistake of a weight that is kept in a coding.
func rounded(numbers Codes, scales Scales) Mistake {
	return Mistake{Kind: "weight.rounded", Coding: Coding{numbers, scales}}
}

// changes are those that a weight is tried with.
func (s *search) changes() []change {
	all := []change{
		{is: Mistake{Kind: "weight.reshaped"}, make: func(w program.Rows, _ hooks.DType) program.Rows { return reshape(w) }},
		each(Mistake{Kind: "weight.clipped-at-zero"}, true, func(x float64) float64 { return max(0, x) }),
		each(Mistake{Kind: "weight.unsigned"}, true, math.Abs),
		each(rounded(Float8E4M3, NoScale), true, func(x float64) float64 { return float64(floats.FromF8E4M3(floats.F8E4M3(float32(x)))) }),
		each(rounded(Float8E5M2, NoScale), true, func(x float64) float64 { return float64(floats.FromF8E5M2(floats.F8E5M2(float32(x)))) }),
		{is: Mistake{Kind: "weight.transposed"}, make: func(w program.Rows, _ hooks.DType) program.Rows { return transpose(w) }},
		each(Mistake{Kind: "weight.plus-one"}, false, func(x float64) float64 { return 1 + x }),
		each(Mistake{Kind: "weight.stored-plus-one"}, true, func(x float64) float64 { return 1 + x }),
		each(Mistake{Kind: "weight.minus-one"}, true, func(x float64) float64 { return x - 1 }),
		each(Mistake{Kind: "weight.negated"}, true, func(x float64) float64 { return -x }),
		zeroed, unit,
		each(Mistake{Kind: "weight.inverted"}, true, func(x float64) float64 { return 1 / x }),
		narrowed(hooks.BF16), narrowed(hooks.F16),
		quantised(rounded(Int8, ByRow), 0, 127), quantised(rounded(Int4, ByRow), 0, 7),
	}
	for _, group := range []int{8, 16, 32, 64, 128} {
		for _, most := range []struct {
			bits int
			step float64
		}{{8, 127}, {4, 7}} {
			all = append(all, quantised(rounded(intsOf(most.bits), Scales(group)), group, most.step))
		}
	}
	for _, bits := range []int{4, 8} {
		for _, group := range []int{8, 16, 32, 64, 128, 0} {
			for _, off := range []float64{0, 1, -1} {
				is := rounded(intsOf(bits), Scales(group))
				if is.Kind = "weight.rounded-between"; off != 0 {
					is.Kind, is.N = "weight.zero-point-off", int(off)
				}
				all = append(all, ranged(is, group, float64(int(1)<<bits-1), off))
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
		is := Mistake{Kind: "weight.multiplied", By: literal(n.value), Called: s.called(n.value, 1, "")}
		all = append(all, each(is, true, func(x float64) float64 { return x * float64(float32(n.value)) }))
	}
	return all
}
