package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// weightChange returns the weight that the port reads with a mistake; nil if the weight cannot have the mistake. model is the type in which the
// weight is stored.
type weightChange func(w program.Rows, m Mistake, model hooks.DType) program.Rows

// weightChanges are the mistakes that need one weight and nothing else from the model.
var weightChanges = map[Kind]weightChange{
	// Number by number.
	"weight.zero":            each(func(float64) float64 { return 0 }),
	"weight.one":             each(func(float64) float64 { return 1 }),
	"weight.plus-one":        func(w program.Rows, m Mistake, _ hooks.DType) program.Rows { return each(plusOne)(w, m, hooks.F32) },
	"weight.stored-plus-one": each(plusOne),
	"weight.minus-one":       each(func(x float64) float64 { return x - 1 }),
	"weight.negated":         each(func(x float64) float64 { return -x }),
	"weight.inverted":        each(func(x float64) float64 { return 1 / x }),
	"weight.clipped-at-zero": each(func(x float64) float64 { return max(0, x) }),
	"weight.unsigned":        each(math.Abs),
	"weight.multiplied":      eachBy(multiplied),
	"weight.rounded-dtype":   narrowed,
	"weight.bits-misread":    eachBy(misread),
	"weight.bytes-swapped":   eachBy(misread),
	"weight.cut-off":         eachBy(truncated),

	// In few bits.
	"weight.rounded":                    coded,
	"weight.rounded-between":            coded,
	"weight.zero-point-off":             coded,
	"weight.rounded-with-other-steps":   coded,
	"weight.rounded-with-one-step-more": coded,
	"weight.cut-to-codes":               coded,
	"weight.codes-with-offset":          coded,
	"weight.codes-unsigned":             coded,
	"weight.codes-without-sign":         coded,
	"weight.codes-saturated":            coded,
	"weight.codes-borrowed":             coded,
	lowScales:                           coded,
	"weight.rounded-with-narrow-scales": coded,
	"weight.rounded-q4-0":               coded,
	"weight.rounded-mxfp4":              coded,
	"weight.scales-of-blocks":           rescaled,
	"weight.scales-of-further":          withOtherScales,
	"weight.scales-by-columns":          withOtherScales,
	"weight.scales-stored-by-columns":   withOtherScales,
	"weight.scales-reversed":            withOtherScales,
	"weight.scales-of-first":            withOtherScales,
	"weight.scales-of-other-size":       withOtherScales,
	"weight.scales-in-turn":             withOtherScales,
	"weight.scales-of-neighbours":       withOtherScales,
	"weight.scales-unused":              withOtherScales,
	"weight.scales-squared":             withOtherScales,
	"weight.scales-inverted":            withOtherScales,
	"weight.scales-of-all":              withOtherScales,
	"weight.scales-rounded":             withOtherScales,
	cutScales:                           withOtherScales,
	raisedScales:                        withOtherScales,
	"weight.scales-as-codes":            withOtherScales,
	"weight.zero-points-all":            withOtherScales,
	"weight.zero-points-wrapped":        withOtherScales,

	// In another order.
	"weight.transposed":       transpose,
	"weight.reshaped":         reshape,
	"weight.rope-rows":        interleavedBlocks,
	interleavedKind:           interleavedBlocks,
	"weight.rope-channels":    interleavedChannels,
	"weight.tiles-by-columns": tiles,
	"weight.tiles-by-rows":    tiles,
	hadamardInputs:            hadamard,
	hadamardOutputs:           hadamard,
	panelsAsRows:              panels,
	rowsAsPanels:              panels,
	rowsApart:                 atOtherPlaces,
	columnsLater:              atOtherPlaces,

	// In part.
	"weight.one-shard":              shard,
	"weight.shard-missing":          shard,
	"weight.first-shard-everywhere": firstShard,
	"weight.columns-cut": func(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
		return changed(w, func(row []float64) { clear(row[max(len(row)-m.N, 0):]) })
	},
	"weight.one-number":  withOneNumber,
	"weight.bit-flipped": withOneNumber,
	"ids.limited":        ruled,
	"ids.modulo":         ruled,
	"ids.shifted":        ruled,
	rowsMean:             withMeans,
	rowsMeanOfOthers:     withMeans,
}

// interleavedKind is the mistake of interleaved rows in a weight without heads.
const interleavedKind Kind = "weight.rows-interleaved"

// altered is a weight with a wrong way to read a row.
type altered struct {
	program.Rows
	read func(w program.Rows, dst []float64, i int) error
}

func (w altered) Row(dst []float64, i int) error { return w.read(w.Rows, dst, i) }

// Product multiplies the altered weight in the same way as the weight.
func (w altered) Product(x, bound []float64) program.Product {
	p := program.ProductOf(w.Rows, x, bound)
	p.W = altered{p.W, w.read}
	return p
}

// changed is a weight whose rows are changed as they are read.
func changed(w program.Rows, row func(x []float64)) program.Rows {
	return changedRows(w, func(_ int, x []float64) { row(x) })
}

// changedRows is changed with the number of the row.
func changedRows(w program.Rows, row func(i int, x []float64)) program.Rows {
	_, n := w.Size()
	return altered{w, func(w program.Rows, dst []float64, i int) error {
		err := w.Row(dst, i)
		row(i, dst[:n])
		return err
	}}
}

// reordered is a weight with its rows in another order.
func reordered(w program.Rows, at func(i int) int) program.Rows {
	return altered{w, func(w program.Rows, dst []float64, i int) error { return w.Row(dst, at(i)) }}
}

// made is a weight whose rows are made by a function.
type made struct {
	rows, cols int
	read       func(dst []float64, i int) error
}

func (w made) Size() (rows, cols int) { return w.rows, w.cols }

func (w made) Row(dst []float64, i int) error { return w.read(dst, i) }

// madeOf is a weight with the numbers of another weight in other places: at is the index of an element in data.
func madeOf(data []float64, rows, cols int, at func(i, j int) int) program.Rows {
	return made{rows, cols, func(dst []float64, i int) error {
		for j := range dst {
			dst[j] = data[at(i, j)]
		}
		return nil
	}}
}

// maxHeld bounds the elements of a weight that is held whole.
const maxHeld = 1 << 24

// held returns the numbers of a matrix, row by row; nil for a vector, and for a matrix with more than maxHeld elements.
func held(w program.Rows) []float64 {
	rows, cols := w.Size()
	if rows < 2 || cols < 2 || rows*cols > maxHeld {
		return nil
	}
	data := make([]float64, rows*cols)
	for i := range rows {
		if w.Row(data[i*cols:][:cols], i) != nil {
			return nil
		}
	}
	return data
}

// each changes numbers one by one, and rounds the results to the model's type.
func each(f func(x float64) float64) weightChange {
	return eachBy(func(Mistake) func(x float64) float64 { return f })
}

// eachBy is each with a function that the mistake gives.
func eachBy(of func(m Mistake) func(x float64) float64) weightChange {
	return func(w program.Rows, m Mistake, model hooks.DType) program.Rows {
		f := of(m)
		return changed(w, func(x []float64) {
			for i := range x {
				x[i] = floats.Round(model, f(x[i]))
			}
		})
	}
}

func plusOne(x float64) float64 { return 1 + x }

func multiplied(m Mistake) func(x float64) float64 {
	by := float64(float32(m.By.X))
	return func(x float64) float64 { return x * by }
}

// narrowed rounds to a narrower type.
func narrowed(w program.Rows, m Mistake, model hooks.DType) program.Rows {
	if model == m.DType {
		return nil
	}
	return each(func(x float64) float64 { return x })(w, m, m.DType)
}

// misread reads the bits of a number as a number of the wrong type, or with its two bytes exchanged.
func misread(m Mistake) func(x float64) float64 {
	written, read := m.DType, m.DType
	for _, pair := range misreadPairs {
		if m.By == dtypeTerm(pair[1]) {
			read = pair[1]
		}
	}
	return func(x float64) float64 { return floats.Misread(written, read, x) }
}

// truncated cuts off the low bits of a number in a narrower type.
func truncated(m Mistake) func(x float64) float64 {
	return func(x float64) float64 { return floats.Truncate(m.DType, x) }
}

// transpose transposes a square weight. The shape does not show the mistake.
func transpose(w program.Rows, _ Mistake, _ hooks.DType) program.Rows {
	if rows, cols := w.Size(); rows != cols {
		return nil
	}
	return turned(w)
}

// turned is the transpose of a weight of any shape; nil for a vector, and for a matrix with more than maxHeld elements.
func turned(w program.Rows) program.Rows {
	data := held(w)
	if data == nil {
		return nil
	}
	rows, cols := w.Size()
	return madeOf(data, cols, rows, func(i, j int) int { return j*cols + i })
}

// reshape is the transposed weight, read row by row in the shape of the weight.
func reshape(w program.Rows, _ Mistake, _ hooks.DType) program.Rows {
	rows, cols := w.Size()
	data := held(w)
	if rows == cols || data == nil {
		return nil
	}
	return madeOf(data, rows, cols, func(i, j int) int {
		at := i*cols + j // of the transposed: cols rows
		return at%rows*cols + at/rows
	})
}

// tiles is a matrix that is stored in tiles of n rows by m columns. Each tile is stored by columns and read by rows, or stored by rows and read by
// columns. It is nil for a matrix that has no whole tiles, or a single one.
func tiles(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	rows, cols := w.Size()
	a, b := m.N, m.M
	if rows < 2 || a < 1 || b < 1 || rows%a != 0 || cols%b != 0 || rows == a && cols == b {
		return nil
	}
	data := held(w)
	if data == nil {
		return nil
	}
	return madeOf(data, rows, cols, func(i, j int) int {
		at := i%a*b + j%b // in the tile by rows
		row, column := at%a, at/a
		if m.Kind == "weight.tiles-by-rows" {
			at = j%b*a + i%a
			row, column = at/b, at%b
		}
		return (i-i%a+row)*cols + j - j%b + column
	})
}

// inTurn is the source of row at if the rows are read from the n parts of each block in turn.
func inTurn(at, block, n int) int { return at - at%block + at%block%n*(block/n) + at%block/n }

// blocksOf reports whether a number of rows or channels divides into blocks of N, and N into M equal parts.
func (m Mistake) blocksOf(all int) bool { return m.N > 0 && m.M > 0 && all%m.N == 0 && m.N%m.M == 0 }

// interleavedBlocks reads blocks of n rows as m rows of n/m, columns first: the rows of heads for the other rotary embedding.
func interleavedBlocks(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	if rows, _ := w.Size(); !m.blocksOf(rows) {
		return nil
	}
	return reordered(w, func(i int) int { return inTurn(i, m.N, m.M) })
}

// interleavedChannels reads blocks of a vector in the same way: the weight of a norm of heads for the other rotary embedding.
func interleavedChannels(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	if rows, cols := w.Size(); rows != 1 || !m.blocksOf(cols) {
		return nil
	}
	return changed(w, func(x []float64) {
		own := slices.Clone(x)
		for i := range x {
			x[i] = own[inTurn(i, m.N, m.M)]
		}
	})
}

// shard keeps part n of m parts of the columns, or all parts except n. Part n is what one shard has, and what a port without the shard lacks.
func shard(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	_, cols := w.Size()
	if m.M < 1 || cols%m.M != 0 || cols == m.M {
		return nil
	}
	return changed(w, func(row []float64) {
		for i := range row {
			if (i*m.M/cols == m.N) != (m.Kind == "weight.one-shard") {
				row[i] = 0
			}
		}
	})
}

// firstShard puts the first of n equal parts of a weight in place of every part. A part is a run of a vector's numbers, or of a matrix's rows. The
// port gives every rank the shard of the first rank.
func firstShard(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	rows, cols := w.Size()
	switch n := m.N; {
	case n < 1:
	case rows == 1 && cols%n == 0 && cols > n:
		return changed(w, func(x []float64) {
			for i := cols / n; i < cols; i++ {
				x[i] = x[i%(cols/n)]
			}
		})
	case rows > n && rows%n == 0:
		return reordered(w, func(i int) int { return i % (rows / n) })
	}
	return nil
}

// withOneNumber puts a wrong number in one place.
func withOneNumber(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	if rows, cols := w.Size(); m.N >= rows || m.M >= cols {
		return nil
	}
	return changedRows(w, func(i int, row []float64) {
		if i == m.N {
			row[m.M] = m.By.X
		}
	})
}
