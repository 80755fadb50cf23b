package weights

import (
	"math"

	"github.com/tracediff/tracediff/internal/quant"
)

// NothingCompared is the sentence about weights without a compared tensor.
const NothingCompared = "no tensor was compared"

// SizeAlone follows the name of a format without a limit for single codes: the tensor was judged by the size and the mean of its errors.
const SizeAlone = ", by the size of its errors"

// farCode is how many steps are rare between a code and its number, in a format that moves errors.
const farCode = 4

// coded judges a tensor of codes as a whole, after no single code was found wrong.
func (row *Row) coded(c quant.Coding, t *tally) {
	e := &t.codes
	row.Class, row.Rounding = Quantised, c.Data().Name
	is, times, worst := c.Whole(e, t.rounded)
	switch is {
	case quant.Large:
		row.wrong(Unidentified, LargeErrors, "its root mean square error is %s times the error of rounding to the nearest code with the best scale, and up to %g times is usual for a format that moves errors; a writer can make it, and so can a mistake", number(times), worst)
	case quant.Coarse:
		row.wrong(Different, Coarse, "its root mean square error is %s times the error of rounding to the nearest code with the best scale; up to %g times is right", number(times), worst)
	case quant.Beside:
		row.wrong(Mistake, Rounded, "%d of %d codes are not the nearest, and %s steps from the numbers on average: they were cut off, or a zero point or an offset is off", e.Beside, e.N, number(e.Above/float64(e.Beside)))
	case quant.Aside:
		row.wrong(Mistake, Rounded, "the codes are %s steps from the numbers on average: a zero point is off, or the codes were cut off", number(e.Mean()))
	case quant.RightInSize:
		row.Rounding += SizeAlone
		row.note("the format moves errors between codes: the size and the mean of the errors of each group were checked, but no single code")
		if e.Furthest > farCode {
			row.note("the code of row %d, column %d is %s steps from its number: the format may move it there, or it is wrong", e.Row, e.Column, number(e.Furthest))
		}
	}
	if is != quant.Right && is != quant.RightInSize {
		row.Unequal = max(e.Beside, 1)
	}
}

// judge marks the elements of a block that a rule does not give: those of codes run by run, as their coding judges them. A non-finite number is never
// right for a finite number.
func (q *rule) judge(b *block, bad []bool) {
	if b.coding == nil {
		for i, l := range b.local {
			bad[i] = !q.holds(l, b.original[i])
		}
		return
	}
	var r quant.Run
	for from, to := range b.runs {
		if b.run(&r, q, from, to); !b.coding.Judge(&r, bad[from:to]) {
			for i := from; i < to; i++ {
				bad[i] = true
			}
		}
	}
}

// run is elements from to to-1, which share a step, with the numbers that a rule makes of the original's. The memory of r is used again.
func (b *block) run(r *quant.Run, q *rule, from, to int) {
	r.Values, r.Bounds, r.Numbers = b.local[from:to], b.Slice(from, to), room(&r.Numbers, to-from)
	for i := range r.Numbers {
		r.Numbers[i] = q.makes(b.original[from+i])
	}
	r.Row, r.Column = b.r0+from/b.columns(), b.c0+from%b.columns()
}

// runs yields the half-open range from, to of each group of a block of codes.
func (b *block) runs(yield func(from, to int) bool) {
	columns := b.columns()
	group := min(b.group(), columns)
	for at := 0; at < len(b.local); at += columns {
		for c := 0; c < columns; c += group {
			if !yield(at+c, at+min(c+group, columns)) {
				return
			}
		}
	}
}

// tally is the result of one slow pass over a tensor, and counts for every later question.
type tally struct {
	sums
	wrongRows
	elements, bad int
	first         spot       // the first bad element
	beyond        int        // finite numbers of the original that are infinite, or the largest number there is, in the port
	vanished      int        // numbers of the original that are zero in the port
	codes         quant.Sums // of codes
	besideIn      []int32    // of codes: how many in a row are not the nearest
	rounded       float64    // of codes: the squared errors that rounding makes, group by group
	doubts        doubts     // of scales
	values, given spread     // of the port, and of the original
}

// sums are those of numbers l of the port and y of the original, where both are finite.
type sums struct {
	wrong, whole float64 // Σ (l−y)² and Σ y²
	own, both    float64 // Σ l² and Σ l·y
}

// wrongRows are the bad elements of each row: how many, and the columns of the first and the last.
type wrongRows struct{ inRow, left, right []int32 }

// mark counts a bad element.
func (w *wrongRows) mark(r, c int) {
	if w.inRow[r] == 0 {
		w.left[r], w.right[r] = int32(c), int32(c)
	}
	w.left[r], w.right[r] = min(w.left[r], int32(c)), max(w.right[r], int32(c))
	w.inRow[r]++
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

func newTally(rows int) *tally {
	return &tally{wrongRows: wrongRows{make([]int32, rows), make([]int32, rows), make([]int32, rows)}, besideIn: make([]int32, rows)}
}

// add counts a block. bad marks the elements that are wrong by rule q.
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
		t.mark(r, c)
	}
}

// addCodes counts the errors of codes, group by group.
func (t *tally) addCodes(b *block, q *rule) {
	var r quant.Run
	for from, to := range b.runs {
		b.run(&r, q, from, to)
		e := r.Sums()
		t.rounded += e.Rounding()
		t.codes.Add(&e)
		t.besideIn[r.Row] += int32(e.Beside)
	}
}

// relative is the relative L2 distance of the port from what the rule makes of the original.
func (t *sums) relative() float64 {
	switch {
	case t.wrong == 0:
		return 0
	case t.whole == 0:
		return math.Inf(1)
	}
	return math.Sqrt(t.wrong / t.whole)
}

// cosine is that of the two tensors as vectors; 0 where one is zero.
func (t *sums) cosine() float64 {
	if t.own == 0 || t.whole == 0 {
		return 0
	}
	return t.both / math.Sqrt(t.own) / math.Sqrt(t.whole)
}

// badRows are the rows that have a bad element.
func (t *wrongRows) badRows() []int {
	var list []int
	for r, n := range t.inRow {
		if n > 0 {
			list = append(list, r)
		}
	}
	return list
}
