package picture

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
)

// Tensor is the picture of one pair of tensors, or of a single tensor. Its letters are codes: see code.go, and docs/report.md for the pictures.
//
// The error of an element is |local − reference|, and infinite if only one side is NaN, infinite or masked. Elements that are masked on
// both sides, or NaN or the same infinity on both, are excluded. The "error" of a single tensor is the size |x| of its finite elements.
type Tensor struct {
	Map Map `json:"map"`
	// Heads are the relative L2 errors of the heads, a letter each on the scale of decades; for a single tensor the root mean squares.
	Heads string `json:"heads,omitempty"`
	// Scatter has the reference's values on the horizontal axis and the local values on the vertical axis; nil for a single tensor and for one
	// number.
	Scatter *Scatter `json:"scatter,omitempty"`
	// Equal elements have no error, Infinite ones an infinite error. Histogram counts the others, by half decades of the error over the
	// reference's root mean square: bin 0 is of half decade From.
	Equal     int64   `json:"equal"`
	Infinite  int64   `json:"infinite,omitempty"`
	From      int     `json:"from,omitempty"`
	Histogram []int64 `json:"histogram,omitempty"`
	// Worst are the elements with the largest errors, elements with one finite side first; equal errors in the tensor's order.
	Worst []Element `json:"worst,omitempty"`
}

// Map is the error by token and channel, each cell the largest of its elements.
type Map struct {
	Down   string         `json:"down"`   // the axis from top to bottom: "token"
	Across string         `json:"across"` // the axes from left to right: "head, channel"
	Size   [2]int         `json:"size"`   // indexes down and across
	Cells  [2]int         `json:"cells"`  // rows and columns of cells: cell i has the indexes j with ⌊j·cells/size⌋ = i
	Top    measure.Number `json:"top"`    // the largest finite error, of code last
	Codes  string         `json:"codes"`  // row by row
}

// Scatter counts elements by their two values.
type Scatter struct {
	Low  measure.Number `json:"low"` // of both axes
	High measure.Number `json:"high"`
	Side int            `json:"side"`  // cells along each axis
	Code string         `json:"codes"` // counts, row by row from the highest local values to the lowest
}

// Element is one element of both tensors.
type Element struct {
	Index     []int          `json:"index"`
	Local     measure.Number `json:"local"`
	Reference measure.Number `json:"reference"`
}

// The sizes of a picture, for a tensor that a person is likely to look at, and for any other.
const (
	largeRows, smallRows       = 32, 8
	largeColumns, smallColumns = 64, 16
	largeSide, smallSide       = 32, 8
	largeWorst, smallWorst     = 8, 3

	maxHeads = 64
)

// small shrinks the picture to a few hundred bytes. The sizes divide each other, so a shrunk picture equals one drawn at the small size.
func (t *Tensor) small() {
	m := &t.Map
	rows, cols := min(m.Cells[0], smallRows), min(m.Cells[1], smallColumns)
	m.Codes = pool(m.Codes, m.Cells, [2]int{rows, cols}, func(a, b byte) byte { return max(a, b) })
	m.Cells = [2]int{rows, cols}
	if s := t.Scatter; s != nil {
		side := min(s.Side, smallSide)
		s.Code = pool(s.Code, [2]int{s.Side, s.Side}, [2]int{side, side}, func(a, b byte) byte {
			return counted(number(a) + number(b))
		})
		s.Side = side
	}
	t.Worst = t.Worst[:min(len(t.Worst), smallWorst)]
}

// number is about how many elements a code of a count stands for.
func number(code byte) int64 {
	if code == none {
		return 0
	}
	return int64(math.Round(math.Exp2(float64(code-zero) / 2)))
}

// pool joins cells of a map to fewer ones.
func pool(text string, from, to [2]int, join func(a, b byte) byte) string {
	codes := make([]byte, to[0]*to[1])
	for i := range text {
		row, col := i/from[1]*to[0]/from[0], i%from[1]*to[1]/from[1]
		at := row*to[1] + col
		codes[at] = join(codes[at], code(text[i]))
	}
	return letters(codes)
}

func code(letter byte) byte {
	switch {
	case letter >= 'A' && letter <= 'Z':
		return letter - 'A'
	case letter >= 'a' && letter <= 'z':
		return letter - 'a' + 26
	case letter >= '0' && letter <= '9':
		return letter - '0' + 52
	case letter == '-':
		return last
	}
	return nonFinite
}

// ranked is an element that may be one of the worst.
type ranked struct {
	at       int64
	err      float64
	local    float64
	refValue float64
}

// worst keeps the elements with the largest errors.
type worst []ranked

func (w *worst) add(e ranked) {
	if n := len(*w); n == largeWorst && !(e.err > (*w)[n-1].err) {
		return
	}
	i, _ := slices.BinarySearchFunc(*w, e, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.err, a.err), cmp.Compare(a.at, b.at))
	})
	*w = slices.Insert(*w, i, e)
	*w = (*w)[:min(len(*w), largeWorst)]
}
