package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// scaleTable has the scale of each block of a matrix, or the zero point of each block. The scale of a block is its largest absolute value, since the codes
// of all blocks have the same largest number. A zero point is the code of 0 where the codes go from the smallest number of a block to the largest.
type scaleTable struct {
	m, k       int       // rows and columns of a block
	rows, cols int       // of the table
	of         []float64 // the scale or zero point of each block, row by row
	step       []float64 // of each block; nil for scales
	largest    float64   // of the table
}

// scalesIn is the table of a matrix for a mistake of blocks with several scales; nil for a matrix of one block.
func scalesIn(w program.Rows, m Mistake) *scaleTable {
	if t := scalesOf(w, m); t != nil && len(t.of) > 1 {
		return t
	}
	return nil
}

// scalesOf is the table of a matrix for a mistake: blocks have m.M rows and m.K columns, and 0 is all. The last rows may be a smaller block. It is nil if the
// matrix has no such blocks, or is too large to be held.
func scalesOf(w program.Rows, m Mistake) *scaleTable {
	t, low, high := rangesOf(w, m)
	if t == nil {
		return nil
	}
	return t.coded(low, high, m.Coding.Numbers)
}

// rangesOf is a table without scales, and the smallest and the largest number of each block, 0 among them. The table is nil as in [scalesOf].
func rangesOf(w program.Rows, m Mistake) (t *scaleTable, low, high []float64) {
	t = &scaleTable{m: m.M, k: m.K}
	rows, cols := w.Size()
	if t.m == 0 {
		t.m = rows
	}
	if t.k == 0 {
		t.k = cols
	}
	if t.m < 0 || t.k < 0 || cols%max(t.k, 1) != 0 || rows*cols > maxHeld {
		return nil, nil, nil
	}
	t.rows, t.cols = (rows+t.m-1)/t.m, cols/t.k
	low, high = make([]float64, t.rows*t.cols), make([]float64, t.rows*t.cols)
	row := make([]float64, cols)
	for i := range rows {
		if w.Row(row, i) != nil {
			return nil, nil, nil
		}
		from := i / t.m * t.cols
		for c := range t.cols {
			for _, x := range row[c*t.k:][:t.k] {
				low[from+c], high[from+c] = min(low[from+c], x), max(high[from+c], x)
			}
		}
	}
	return t, low, high
}

// coded is the table with the scales of blocks of some ranges, or with the zero points of a coding.
func (t *scaleTable) coded(low, high []float64, zeros Codes) *scaleTable {
	of := *t
	of.of = make([]float64, len(low))
	if zeros != "" {
		of.step = make([]float64, len(low))
	}
	for at := range of.of {
		if zeros == "" {
			of.of[at] = max(-low[at], high[at])
			continue
		}
		if of.step[at] = float64(float32(float64(float32(high[at]-low[at])) / (2*codesOf[zeros].most + 1))); of.step[at] > 0 {
			of.of[at] = math.RoundToEven(float64(float32(-low[at] / of.step[at])))
		}
	}
	of.largest = slices.Max(of.of)
	return &of
}

// at is the block of an element.
func (t *scaleTable) at(i, j int) int {
	return i/t.m*t.cols + j/t.k
}

// movedScales give the block whose scale an element gets, or whose zero point.
var movedScales = map[Kind]func(t *scaleTable, m Mistake, i, j int) int{
	"weight.scales-of-further": func(t *scaleTable, m Mistake, i, j int) int {
		all := len(t.of)
		return ((t.at(i, j)+m.N)%all + all) % all
	},
	"weight.scales-by-columns": func(t *scaleTable, _ Mistake, i, j int) int { return j/t.k*t.rows + i/t.m },
	"weight.scales-stored-by-columns": func(t *scaleTable, _ Mistake, i, j int) int {
		at := t.at(i, j)
		return at%t.rows*t.cols + at/t.rows
	},
	"weight.scales-reversed": func(t *scaleTable, _ Mistake, i, j int) int { return len(t.of) - 1 - t.at(i, j) },
	"weight.scales-of-first": func(t *scaleTable, m Mistake, i, j int) int {
		switch m.Axis {
		case columnAxis:
			return j / t.k
		case rowAxis:
			return i / t.m * t.cols
		}
		return 0
	},
	"weight.scales-of-other-size": func(t *scaleTable, m Mistake, i, j int) int {
		if m.Axis == rowAxis {
			return min(i/m.N, t.rows-1)*t.cols + j/t.k
		}
		return i/t.m*t.cols + min(j/m.N, t.cols-1)
	},
	"weight.scales-in-turn": func(t *scaleTable, m Mistake, i, j int) int {
		return t.alongAxis(m.Axis, i, j, func(n int) int { return inTurn(n, eightScales, m.N) })
	},
	"weight.scales-of-neighbours": func(t *scaleTable, m Mistake, i, j int) int {
		return t.alongAxis(m.Axis, i, j, func(n int) int { return n ^ 1 })
	},
}

// eightScales is how many numbers are interleaved in a word.
const eightScales = 8

// alongAxis moves the rows or the columns of a table. A row or column that would come from beyond the table stays.
func (t *scaleTable) alongAxis(axis string, i, j int, from func(n int) int) int {
	row, col := i/t.m, j/t.k
	if axis == rowAxis {
		if r := from(row); r < t.rows {
			row = r
		}
	} else if c := from(col); c < t.cols {
		col = c
	}
	return row*t.cols + col
}

// computedScales give a wrong scale or zero point for the right one. largest is the largest of the table.
var computedScales = map[Kind]func(own, largest float64, m Mistake) float64{
	"weight.scales-unused":   func(_, _ float64, m Mistake) float64 { return float64(m.N) },
	"weight.scales-squared":  func(own, _ float64, m Mistake) float64 { return own * own / float64(m.N) },
	"weight.scales-inverted": func(own, _ float64, m Mistake) float64 { return float64(m.N) * float64(m.N) / own },
	"weight.scales-rounded": func(own, _ float64, m Mistake) float64 {
		return floats.Round(m.DType, own/float64(m.N)) * float64(m.N)
	},
	"weight.scales-of-all": func(_, largest float64, _ Mistake) float64 { return largest },
	cutScales:              func(own, largest float64, m Mistake) float64 { return min(own, largest*m.X.Value) },
	raisedScales:           func(own, largest float64, m Mistake) float64 { return max(own, largest*m.X.Value) },
	"weight.scales-as-codes": func(own, _ float64, m Mistake) float64 {
		e := math.Floor(math.Log2(own)) - float64(m.N)
		return own / math.Exp2(e) * (e + scaleBias)
	},
	"weight.zero-points-all": func(_, _ float64, m Mistake) float64 { return float64(m.N) },
	"weight.zero-points-wrapped": func(own, _ float64, m Mistake) float64 {
		if own == 0 {
			return 2*codesOf[m.Coding.Numbers].most + 1
		}
		return own
	},
}

const (
	cutScales    Kind = "weight.scales-cut"
	raisedScales Kind = "weight.scales-raised"
	scaleBias         = 127 // the code of a scale of 1, where a scale is an exponent
)

// wrong gives the wrong scale or zero point of an element; nil if the mistake does not fit the table.
func (t *scaleTable) wrong(m Mistake) func(i, j int) float64 {
	if from := movedScales[m.Kind]; from != nil && m.N >= -len(t.of) && (m.N > 0 || m.Kind != "weight.scales-of-other-size") && (m.N > 0 && eightScales%m.N == 0 || m.Kind != "weight.scales-in-turn") {
		return func(i, j int) float64 { return t.of[from(t, m, i, j)] }
	}
	to := computedScales[m.Kind]
	if to == nil {
		return nil
	}
	return func(i, j int) float64 { return to(t.of[t.at(i, j)], t.largest, m) }
}

// change puts a wrong scale or zero point in place of the right one in a row of the matrix, without the rounding to the model's type.
func (t *scaleTable) change(i int, row []float64, wrong func(i, j int) float64, r Rounding) {
	for j, x := range row {
		at := t.at(i, j)
		own, is := t.of[at], wrong(i, j)
		switch {
		case is == own:
		case t.step != nil:
			row[j] = float64(float32(x + float64(float32((own-is)*t.step[at]))))
		case own > 0:
			row[j] = rescale(x, own, is, r)
		}
	}
}

// rescale is a number with another scale, in float32, by the order of the port.
func rescale(x, own, is float64, r Rounding) float64 {
	switch r {
	case RatioFirst:
		return float64(float32(x * float64(float32(is/own))))
	case ScaleFirst:
		return float64(float32(float64(float32(x*is)) / own))
	case InSteps:
		own, is = float64(float32(own/127)), float64(float32(is/127))
	}
	return float64(float32(float64(float32(x/own)) * is))
}

// withOtherScales is a matrix with wrong scales or zero points.
func withOtherScales(w program.Rows, m Mistake, model hooks.DType) program.Rows {
	t := scalesIn(w, m)
	if t == nil {
		return nil
	}
	wrong := t.wrong(m)
	if wrong == nil {
		return nil
	}
	return t.changed(w, m, wrong, model)
}

// changed is the matrix of a table with wrong scales or zero points.
func (t *scaleTable) changed(w program.Rows, m Mistake, wrong func(i, j int) float64, model hooks.DType) program.Rows {
	return changedRows(w, func(i int, row []float64) {
		t.change(i, row, wrong, m.Rounding)
		for j, x := range row {
			row[j] = floats.Round(model, x)
		}
	})
}
