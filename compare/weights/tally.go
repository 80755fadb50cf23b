package weights

import (
	"math"

	"github.com/tracediff/tracediff/internal/quant"
)

// tally is what one pass over a tensor has found out.
type tally struct {
	rows, columns int
	elements, bad int
	first         spot // the first bad element
	inRow         []int32
	left, right   []int32    // of the bad elements of a row, the first and the last column
	wrong, whole  float64    // Σ (l−y)² and Σ y², of finite numbers
	own, both     float64    // Σ l² and Σ l·y
	largest       float64    // |y|
	beyond        int        // finite numbers of the original that are infinite, or the largest number there is, in the port
	vanished      int        // numbers of the original that are zero in the port
	odd           int        // NaN and infinities of the port where the original has a finite number
	codes         codeErrors // of codes
	besideIn      []int32    // of codes: how many in a row are not the nearest
	rounded       float64    // the squared errors that rounding makes, group by group
	values, given spread     // of the port, and of the original
	doubts        doubts     // of scales
}

// spread tells whether numbers are all one.
type spread struct {
	first        float64
	some, varies bool
}

func (s *spread) add(list []float64) {
	if len(list) > 0 && !s.some {
		s.first, s.some = list[0], true
	}
	for i := 0; i < len(list) && !s.varies; i++ {
		s.varies = !same(list[i], s.first)
	}
}

// spot is an element of both sides.
type spot struct {
	row, column     int
	local, original float64
}

func newTally(rows, columns int) *tally {
	return &tally{rows: rows, columns: columns, inRow: make([]int32, rows), besideIn: make([]int32, rows), left: make([]int32, rows), right: make([]int32, rows)}
}

// add counts a block, of which some elements are bad by a rule.
func (t *tally) add(b *block, q *rule, bad []bool) {
	columns := b.columns()
	t.values.add(b.local)
	t.given.add(b.original)
	if b.coding != nil {
		t.addCodes(b, q)
	}
	for i, l := range b.local {
		x := b.original[i]
		y := q.makes(x)
		t.elements++
		if d := l - y; d-d == 0 {
			t.wrong += d * d
			t.whole += y * y
			t.own += l * l
			t.both += l * y
		} else if x-x == 0 {
			t.odd++
		}
		if a := math.Abs(y); a > t.largest {
			t.largest = a
		}
		if l == 0 && y != 0 {
			t.vanished++
		}
		if q.round.dtype != 0 && y-y == 0 && math.Abs(y) > largestOf(q.round) {
			t.beyond++
		}
		if !bad[i] {
			continue
		}
		r, c := b.r0+i/columns, b.c0+i%columns
		if t.bad == 0 || r < t.first.row || r == t.first.row && c < t.first.column {
			t.first = spot{r, c, l, x}
		}
		t.bad++
		if t.inRow[r] == 0 {
			t.left[r], t.right[r] = int32(c), int32(c)
		}
		t.left[r], t.right[r] = min(t.left[r], int32(c)), max(t.right[r], int32(c))
		t.inRow[r]++
	}
}

// addCodes counts the errors of codes, group by group.
func (t *tally) addCodes(b *block, q *rule) {
	for from, to := range b.runs {
		var e codeErrors
		for i := from; i < to; i++ {
			x := q.makes(b.original[i])
			e.add(b, i, x, b.Slack[i]+quant.Taken(x))
		}
		t.rounded += e.rounding()
		t.codes.merge(&e)
		t.besideIn[b.r0+from/b.columns()] += int32(e.beside)
	}
}

// relative is the relative L2 distance of the port from what the rule makes of the original.
func (t *tally) relative() float64 {
	switch {
	case t.wrong == 0:
		return 0
	case t.whole == 0:
		return math.Inf(1)
	}
	return math.Sqrt(t.wrong / t.whole)
}

// cosine is that of the two tensors as vectors; 0 where one is zero.
func (t *tally) cosine() float64 {
	if t.own == 0 || t.whole == 0 {
		return 0
	}
	return t.both / math.Sqrt(t.own) / math.Sqrt(t.whole)
}

// badRows are the rows that have a bad element.
func (t *tally) badRows() []int {
	var list []int
	for r, n := range t.inRow {
		if n > 0 {
			list = append(list, r)
		}
	}
	return list
}
