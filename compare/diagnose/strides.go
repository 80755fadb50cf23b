package diagnose

import (
	"iter"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// A matrix may be read from the right memory at wrong places: its rows are written at one distance and read at another distance, since one side pads
// rows to whole blocks, or the elements of each row are read at an offset from some column on.

const (
	rowsApart    Kind = "weight.rows-read-apart"
	columnsLater Kind = "weight.columns-read-later"
)

const (
	leastTokensOfRow = 3   // tokens that tell where a row is read
	mostPadded       = 256 // elements: a block to which rows are padded
	eighth           = 8   // columns: parts of rows begin at a multiple of these
	mostPlacesOfRow  = 16  // places of a row that are tried on all rows
)

// placesOfRows yields matrices that are read at wrong places. The second row of the result shows where it is read.
func placesOfRows(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, e := range s.entries {
			if !endsWithMatrix(e) {
				return
			}
		}
		r := secondRow(s)
		if r == nil {
			return
		}
		name := weightAtEnd(s.first).Name
		for m := range r.places {
			if m.Of, m.Place = weightTerm(name), order.NameOf(name).Role(); !yield(m) {
				return
			}
		}
	}
}

// placedRow is the second row of a matrix, which some operands are multiplied by.
type placedRow struct {
	x       [][]float64 // the operands
	y, half []float64   // by operand: the result without the bias, and its largest error
	memory  []float64   // the first rows of the matrix
	rows    int
	cols    int
}

// secondRow is nil if the entries of the first entry's layer have too few tokens, and if the row is right in all of them.
func secondRow(s *search) *placedRow {
	w := s.first.Call.W[weightIndexAtEnd(s.first)]
	r := &placedRow{}
	if r.rows, r.cols = w.Size(); r.rows < 3 {
		return nil
	}
	held := min(r.rows, (2*r.cols+r.furthest())/r.cols+1)
	r.memory = make([]float64, held*r.cols)
	for i := range held {
		if s.failed(w.Row(r.memory[i*r.cols:][:r.cols], i)) {
			return nil
		}
	}
	for _, e := range s.entries {
		if weightAtEnd(e).Name == weightAtEnd(s.first).Name && len(r.x) < tokensOfRows && !r.add(s, e) {
			return nil
		}
	}
	if len(r.x) < leastTokensOfRow || r.at(r.cols, 0) {
		return nil
	}
	s.m.work += r.cols * (2*r.cols + r.furthest()) / 8
	return r
}

// add adds the tokens of an entry. It is not ok if the entry is no product of all tokens with the whole matrix.
func (r *placedRow) add(s *search, e *Entry) (ok bool) {
	end := &e.Program.Steps[e.Program.Out.Step]
	x, ok := s.valueAt(e, end.Args[0])
	y, half := e.Target()
	tokens := len(x) / r.cols
	if !ok || len(y) != tokens*r.rows {
		return false
	}
	bias := 0.0
	if len(end.Args) > 2 {
		b, ok := s.valueAt(e, end.Args[2])
		if !ok || len(b) < r.rows {
			return false
		}
		bias = b[1]
	}
	top := math.Abs(largestOf(r.memory))
	for t := range min(tokens, tokensOfRows-len(r.x)) {
		in, size := x[t*r.cols:][:r.cols], 0.0
		for _, v := range in {
			size += math.Abs(v) * top
		}
		r.x, r.y, r.half = append(r.x, in), append(r.y, y[t*r.rows+1]-bias), append(r.half, 2*half[t*r.rows+1]+0x1p-19*size)
	}
	return true
}

// furthest is how many elements later the row is looked for.
func (r *placedRow) furthest() int { return max(r.cols, mostPadded) }

// element is an element of the memory; 0 outside of it.
func (r *placedRow) element(i int) float64 {
	if i < 0 || i >= len(r.memory) {
		return 0
	}
	return r.memory[i]
}

// at reports whether the row is read later, from a column on, by a number of elements.
func (r *placedRow) at(from, later int) bool {
	for t, x := range r.x {
		sum := 0.0
		for c, v := range x {
			i := r.cols + c
			if c >= from {
				i += later
			}
			sum += v * r.element(i)
		}
		if !(math.Abs(sum-r.y[t]) <= r.half[t]) {
			return false
		}
	}
	return true
}

// behindPadding reports whether the row begins with some elements of padding, and then has its first elements.
func (r *placedRow) behindPadding(n int) bool {
	for t, x := range r.x {
		sum := 0.0
		for c, v := range x[n:] {
			sum += v * r.element(r.cols+c)
		}
		if !(math.Abs(sum-r.y[t]) <= r.half[t]) {
			return false
		}
	}
	return true
}

// places yields the places at which the row may be read, the nearest first.
func (r *placedRow) places(yield func(Mistake) bool) {
	n := 0
	use := func(m Mistake) bool {
		n++
		return yield(m) && n < mostPlacesOfRow
	}
	for d := 1; d <= r.furthest(); d++ {
		if d < r.cols && r.behindPadding(d) && !use(Mistake{Kind: rowsApart, N: r.cols, M: r.cols + d}) {
			return
		}
		for _, later := range []int{d, -d} {
			for _, from := range r.columnsOf(later) {
				if from == 0 && r.cols+later > 0 && !use(Mistake{Kind: rowsApart, N: r.cols + later, M: r.cols}) {
					return
				}
				if (from > 0 || later%r.cols != 0) && !use(Mistake{Kind: columnsLater, K: from, N: later}) { // else whole rows are moved
					return
				}
			}
		}
	}
}

// columnsOf lists the columns from which on the row may be read later. The first operand tells most columns apart.
func (r *placedRow) columnsOf(later int) (all []int) {
	own, other := 0.0, 0.0
	x := r.x[0]
	for c, v := range x {
		own += v * r.element(r.cols+c)
	}
	for c := r.cols - 1; c >= 0; c-- {
		own -= x[c] * r.element(r.cols+c)
		other += x[c] * r.element(r.cols+c+later)
		if (c%eighth == 0 || 4*c%r.cols == 0) && math.Abs(own+other-r.y[0]) <= r.half[0] && r.at(c, later) {
			all = append(all, c)
		}
	}
	return all
}

// atOtherPlaces is a matrix that is read at the wrong places of a mistake. Beyond its end, and in the padding of its rows, the memory is 0.
func atOtherPlaces(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	rows, cols := w.Size()
	read, written := m.N, m.M
	if m.Kind == columnsLater {
		read, written = cols, cols
	}
	if rows < 2 || read < 1 || written < cols || m.K < 0 || m.K >= cols || read == written && m.Kind == rowsApart {
		return nil
	}
	return altered{w, func(w program.Rows, dst []float64, i int) error {
		own, last := make([]float64, cols), -1
		for c := range cols {
			at := i*read + c
			if m.Kind == columnsLater && c >= m.K {
				at += m.N
			}
			dst[c] = 0
			if at < 0 || at/written >= rows || at%written >= cols {
				continue
			}
			if r := at / written; r != last {
				if err := w.Row(own, r); err != nil {
					return err
				}
				last = r
			}
			dst[c] = own[at%written]
		}
		return nil
	}}
}

// solvedPlaces counts the numbers of a place.
func solvedPlaces(m Mistake) int {
	if m.Kind == columnsLater && m.K > 0 {
		return 2
	}
	return 1
}
