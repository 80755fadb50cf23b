package weights

import (
	"math"

	"github.com/tracediff/tracediff/internal/quant"
)

// lost is the part of a run's energy beyond which its codes are not a rounding of the original. Codes of four bits lose a hundredth by
// rounding, codes of two bits a tenth.
const lost = 0.2

// The bounds of a run of a group, in steps. The step that a run needs is twice its largest magnitude over the number of its steps: with it
// rounding errs by 1/√12 of a step, root mean square, and by half a step at most.
const (
	worstRun  = 1.0 // root mean square error, in steps that the run needs: 3.5 times the error of rounding
	worstMean = 0.5 // of the errors of a format that moves errors, in its own steps: a zero point off by one makes 1
	minMean   = 16  // so many elements have a mean
	minBeside = 8   // of so many elements half have to be the nearest codes
)

// The same of a format that moves errors. Inputs that go together make its errors larger: up to 0.65 of a group's sum of squares, 1.7 steps and
// 2.4 times the rounding of a tensor by GPTQ with inputs of 16 factors, and a mean factor of 0.9 to 1.1. A group of other numbers has 2 of its
// sum of squares and 4 steps, and a factor near 0; a scale that is off by an exponent is the factor.
const (
	movedLost   = 0.8
	movedRun    = 2.5
	movedFactor = 0.4 // from 1
	movedTensor = 3.0
)

// The bounds of a whole tensor.
const (
	worstTensor = 2.0 // the root mean square error over the error of rounding with the steps that the groups need
	worstBeside = 8   // one code in so many is not the nearest
	tensorMean  = 0.2 // of the errors of a format that moves them, in steps
	farCode     = 4   // steps between a code and its number; more steps are rare in a format that moves errors
	minTensor   = 256 // elements that a tensor needs for these
)

// SizeAlone follows the name of a format without a limit for single codes: the tensor was judged by the size and the mean of its errors.
const SizeAlone = ", by the size of its errors"

// coded judges a tensor of codes as a whole, after no single code was found wrong.
func (row *Row) coded(g *quant.Coding, t *tally) {
	e, times, worst := &t.codes, t.codes.times(), worstTensor
	switch {
	case e.n < minTensor:
		worst = worstRun * math.Sqrt(12)
	case g.Moves:
		worst = movedTensor
	}
	if !g.Shared && e.sum > 0 && t.rounded > 0 {
		times = math.Sqrt(e.sum / t.rounded)
	}
	row.Class, row.Rounding = Quantised, g.Name
	mean := e.signed / float64(max(e.n, 1))
	switch {
	case g.Moves && !(times <= worst):
		row.wrong(Unidentified, LargeErrors, "its root mean square error is %s times the error of rounding to the nearest code with the best scale, and up to %g times is usual for a format that moves errors; a writer can make it, and so can a mistake", number(times), worst)
	case !(times <= worst):
		row.wrong(Different, Coarse, "its root mean square error is %s times the error of rounding to the nearest code with the best scale; up to %g times is right", number(times), worst)
	case !g.Moves && e.n >= minBeside && e.beside*worstBeside > e.n:
		row.wrong(Mistake, Rounded, "%d of %d codes are not the nearest, and %s steps from the numbers on average: they were cut off, or a zero point or an offset is off", e.beside, e.n, number(e.above/float64(e.beside)))
	case g.Moves && e.n >= minTensor && !(math.Abs(mean) <= tensorMean):
		row.wrong(Mistake, Rounded, "the codes are %s steps from the numbers on average: a zero point is off, or the codes were cut off", number(mean))
	case g.Moves:
		row.Rounding += SizeAlone
		row.note("the format moves errors between codes: the size and the mean of the errors of each group were checked, but no single code")
		if e.furthest > farCode {
			row.note("the code of row %d, column %d is %s steps from its number: the format may move it there, or it is wrong", e.row, e.column, number(e.furthest))
		}
		return
	default:
		return
	}
	row.Unequal = max(e.beside, 1)
}

// judge marks the elements of a block that a rule does not give. A code is right within one and a half steps of its number, plus the slack
// of the grid; for a number beyond the last code, within the same distance of the last code. A non-finite number is never right for a
// finite number. In each run of a group, the squared errors beyond the last codes are at most the lost part of the original's sum of
// squares, the error is at most worstRun, and at least half of the codes are the nearest. For formats that move errors, judge limits the
// size and the mean of all errors.
func (q *rule) judge(b *block, bad []bool) {
	if b.coding == nil {
		for i, l := range b.local {
			bad[i] = !q.holds(l, b.original[i])
		}
		return
	}
	for from, to := range b.runs {
		if b.coding.Apart {
			q.apart(b, bad, from, to)
		} else if !q.run(b, bad, from, to) {
			for i := from; i < to; i++ {
				bad[i] = true
			}
		}
	}
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

// run marks the wrong elements in from to to-1, which share a step, and reports whether the run as a whole is right.
func (q *rule) run(b *block, bad []bool, from, to int) bool {
	var off, whole, both, mean float64
	var e codeErrors
	inside := 0
	for i := from; i < to; i++ {
		x, l := q.makes(b.original[i]), b.local[i]
		slack := b.Slack[i] + quant.Taken(x)
		within := b.Within(i, x)
		beyond := math.Abs(x - within)
		if b.coding.Moves {
			bad[i], beyond = l-l != 0, math.Abs(x-l)
			if x == within && b.Step[i] > 0 {
				mean += (x - l) / b.Step[i]
				inside++
			}
		} else {
			bad[i] = l-l != 0 || !b.Allows(i, l, x, slack)
		}
		if bad[i] { // the remaining elements are judged without the wrong element
			continue
		}
		if beyond -= slack; beyond > 0 {
			off += beyond * beyond
		}
		whole, both = whole+x*x, both+l*x
		e.add(b, i, x, slack)
	}
	switch {
	case b.coding.Moves:
		return off <= movedLost*whole && (inside < minMean || math.Abs(mean) <= worstMean*float64(inside) && math.Abs(both-whole) <= movedFactor*whole) &&
			(b.coding.Shared || e.times() <= movedRun*math.Sqrt(12))
	case !(off <= lost*whole):
		return false
	case b.coding.Shared: // a run need not fill the codes: the tensor is judged as a whole
		return true
	case e.n >= minBeside && 2*e.beside > e.n:
		return false
	}
	return e.times() <= worstRun*math.Sqrt(12)
}

// codeErrors are the errors of codes, held against those of rounding to the nearest code with the step that the numbers need.
type codeErrors struct {
	n, beside     int     // elements, and those whose code is not the nearest
	sum           float64 // of the squared errors, less the slack of the grid
	signed, above float64 // the sum of the errors in steps, and the part of the codes other than the nearest
	outward       float64 // the sum of the errors in steps, counted away from zero
	furthest      float64 // code from its number, in steps
	row, column   int     // of that code
	largest       float64 // magnitude of the numbers
	codes         float64 // steps from the lowest code to the highest
}

// add counts element i of a block, whose number is x.
func (e *codeErrors) add(b *block, i int, x, slack float64) {
	e.n++
	l, step := b.local[i], b.Step[i]
	if d := math.Abs(x-l) - slack; d > 0 {
		e.sum += d * d
	}
	if a := math.Abs(x); a > e.largest {
		e.largest = a
	}
	if !(step > 0) {
		return
	}
	if n := math.Round((b.High[i] - b.Low[i]) / step); n > e.codes {
		e.codes = n
	}
	d := l - b.Within(i, x)
	if s := math.Abs(d) / step; s > e.furthest {
		e.furthest, e.row, e.column = s, b.r0+i/b.columns(), b.c0+i%b.columns()
	}
	e.signed += d / step
	e.outward += math.Copysign(d, d*x) / step
	if math.Abs(d) > 0.5*step*(1+0x1p-12)+slack {
		e.beside++
		e.above += d / step
	}
}

// merge adds the errors of other elements.
func (e *codeErrors) merge(o *codeErrors) {
	e.n, e.beside = e.n+o.n, e.beside+o.beside
	e.sum, e.signed, e.above, e.outward = e.sum+o.sum, e.signed+o.signed, e.above+o.above, e.outward+o.outward
	if o.furthest > e.furthest {
		e.furthest, e.row, e.column = o.furthest, o.row, o.column
	}
	e.largest, e.codes = max(e.largest, o.largest), max(e.codes, o.codes)
}

// rounding is the sum of squared errors of rounding with one step.
func (e *codeErrors) rounding() float64 {
	if e.codes == 0 {
		return 0
	}
	step := 2 * e.largest / e.codes
	return float64(e.n) * step * step / 12
}

// times is the ratio of the root mean square error to the error of rounding. It is 0 if no element has a step: errors are then errors of
// the slack, and the slack has a check of its own.
func (e *codeErrors) times() float64 {
	switch {
	case e.sum == 0 || e.codes == 0:
		return 0
	case e.largest == 0:
		return math.Inf(1)
	}
	return math.Sqrt(e.sum / e.rounding())
}

// tally is the result of one slow pass over a tensor, and counts for every later question.
type tally struct {
	sums
	wrongRows
	elements, bad int
	first         spot       // the first bad element
	beyond        int        // finite numbers of the original that are infinite, or the largest number there is, in the port
	vanished      int        // numbers of the original that are zero in the port
	codes         codeErrors // of codes
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
