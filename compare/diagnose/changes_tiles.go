package diagnose

import (
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// firstOf has the first of n equal parts of a weight in the place of each: of a vector its numbers, of a matrix its rows. So it is where
// every rank is given the shard of the first.
func firstOf(n int) change {
	return change{is: Mistake{Kind: "weight.first-shard-everywhere", N: n}, make: func(w program.Rows, _ hooks.DType) program.Rows {
		rows, cols := w.Size()
		switch {
		case rows == 1 && cols%n == 0 && cols > n:
			return changed{w, func(x []float64) {
				for i := cols / n; i < cols; i++ {
					x[i] = x[i%(cols/n)]
				}
			}}
		case rows > n && rows%n == 0:
			return reordered{w, func(i int) int { return i % (rows / n) }}
		}
		return nil
	}}
}

// tileSizes are those of the sides of tiles.
var tileSizes = []int{2, 4, 8, 16, 32}

// tiled are the ways to read a matrix that is stored in tiles: each tile has its elements in the other order of rows and columns.
func tiled() []change {
	var all []change
	for _, a := range tileSizes {
		for _, b := range tileSizes {
			for _, byColumns := range []bool{true, false} {
				is := Mistake{Kind: "weight.tiles-by-columns", N: a, M: b}
				if !byColumns {
					if a == b { // the same
						continue
					}
					is.Kind = "weight.tiles-by-rows"
				}
				all = append(all, change{is: is, make: func(w program.Rows, _ hooks.DType) program.Rows {
					return tiles(w, a, b, byColumns)
				}})
			}
		}
	}
	return all
}

// tiles is a matrix, held whole, with the elements of each tile of a rows by b columns in another order: by columns in memory and read by
// rows, or the other way round. It is nil where it has no whole tiles, or one alone.
func tiles(w program.Rows, a, b int, byColumns bool) program.Rows {
	rows, cols := w.Size()
	if rows < 2 || rows%a != 0 || cols%b != 0 || rows == a && cols == b || rows*cols > maxHeld {
		return nil
	}
	t := &held{rows, cols, make([]float64, rows*cols)}
	row := make([]float64, cols)
	for i := range rows {
		if w.Row(row, i) != nil {
			return nil
		}
		for j, x := range row {
			at := i%a*b + j%b // where it is read, of the tile by rows
			if byColumns {
				at = j%b*a + i%a
				t.data[(i-i%a+at/b)*cols+j-j%b+at%b] = x
				continue
			}
			t.data[(i-i%a+at%a)*cols+j-j%b+at/a] = x
		}
	}
	return t
}

// held is a matrix in memory, row by row.
type held struct {
	rows, cols int
	data       []float64
}

func (w *held) Size() (rows, cols int) { return w.rows, w.cols }

func (w *held) Row(dst []float64, i int) error {
	copy(dst, w.data[i*w.cols:][:w.cols])
	return nil
}
