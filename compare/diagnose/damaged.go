package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// damaged yields damage to matrices: the last columns are 0, one number is wrong (a bit is flipped), blocks of rows have wrong scales, or rows are a mean.
func damaged(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, w := range weightsRead(s, program.Matrix) {
			k := slices.IndexFunc(s.first.Weights, func(o order.Weight) bool { return o.Name == w.Name })
			for _, of := range []func(s *search, k int) iter.Seq[Mistake]{cutColumns, oneOtherNumber, otherScales, blockScales, meanRows} {
				for m := range of(s, k) {
					m.Of, m.Place = weightTerm(w.Name), order.NameOf(w.Name).Role()
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// mostCut is how many columns at the end of a matrix are tried as 0.
const mostCut = 8

// mostTile is the largest tile in which a sum over columns may be taken.
const mostTile = 256

// cutColumns yields 0 in the last columns of a matrix.
func cutColumns(s *search, k int) iter.Seq[Mistake] {
	_, cols := s.first.Call.W[k].Size()
	var cuts []int
	for n := 1; n <= min(mostCut, cols-1); n++ {
		cuts = append(cuts, n)
	}
	for tile := 2 * mostCut; tile < cols && tile <= mostTile; tile *= 2 { // the columns after the last whole tile
		if n := cols % tile; n > 0 && !slices.Contains(cuts, n) {
			cuts = append(cuts, n)
		}
	}
	return func(yield func(Mistake) bool) {
		for _, n := range cuts {
			if !yield(Mistake{Kind: "weight.columns-cut", N: n, M: cols}) {
				return
			}
		}
	}
}

// linear is a product with a matrix, and a bias, that gives the result of an entry.
type linear struct {
	rows, cols int
	own        []float64 // the result
	x          []float64 // the input that is multiplied by the matrix
	bias       []float64 // nil for none
}

// linearOf is the product of the first entry of a search with the matrix k, if all entries have one name; ok is false for an entry that is no product with
// the matrix, or is read in few tokens.
func linearOf(s *search, k int) (l linear, ok bool) {
	e := s.entries[0]
	name := func(e *Entry) string { return s.m.List.Entries[e.Node.Entry].Name }
	if s.first != e || slices.ContainsFunc(s.entries, func(o *Entry) bool { return name(o) != name(e) }) {
		return l, false
	}
	return linearIn(s, e, k)
}

// linearIn is the product of an entry with its matrix k; ok is false for an entry that is no product with the matrix, or is read in few tokens.
func linearIn(s *search, e *Entry, k int) (l linear, ok bool) {
	p := e.Program
	st := &p.Steps[p.Out.Step]
	if st.Prim != program.Affine {
		return l, false
	}
	w := st.Args[1].Step
	if p.Steps[w].Prim != program.Matrix || p.Steps[w].Index() != k || len(e.signed(s.m).Copies(e.signed(s.m).PlaceOf(w))) != 1 {
		return l, false
	}
	l.rows, l.cols = e.Call.W[k].Size()
	own, has := s.valueOf(e, nil)
	l.own = own.Data
	if l.x, ok = s.valueAt(e, st.Args[0]); !ok || !has || p.Out.Last() != l.rows || len(l.x)%l.cols != 0 {
		return l, false
	}
	if len(st.Args) > 2 {
		if l.bias, ok = s.valueAt(e, st.Args[2]); len(l.bias) < l.rows {
			return l, false
		}
	}
	return l, ok
}

// oneOtherNumber yields another value for one number of a matrix, if only one channel is wrong. The error of the channel is then, token by token, its
// input times the error of the number.
func oneOtherNumber(s *search, k int) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		e := s.entries[0]
		wrong := wrongChannels(e)
		if len(e.Left) < shownRows || len(wrong) != 1 || slices.ContainsFunc(s.entries, func(o *Entry) bool { return !slices.Equal(wrongChannels(o), wrong) }) {
			return
		}
		channel := wrong[0]
		l, ok := linearOf(s, k)
		if !ok {
			return
		}
		y, _ := e.Target()
		row := make([]float64, l.cols)
		if s.failed(e.Call.W[k].Row(row, channel)) {
			return
		}
		best, col, value := math.Inf(1), -1, 0.0
		for c := range l.cols {
			var xd, xx, dd float64 // sums of products: input with difference, input with input, difference with difference
			for r := range len(y) / l.rows {
				d, in := y[r*l.rows+channel]-l.own[r*l.rows+channel], l.x[r*l.cols+c]
				xd, xx, dd = xd+in*d, xx+in*in, dd+d*d
			}
			if rest := dd - xd*xd/xx; xx > 0 && rest < best {
				best, col, value = rest, c, row[c]+xd/xx
			}
		}
		if col < 0 {
			return
		}
		before := len(s.found)
		for _, v := range damages(row[col], value, e) {
			m := Mistake{Kind: "weight.one-number", N: channel, M: col, By: literal(v), For: literal(row[col])}
			if r := v / row[col]; math.Abs(math.Log2(math.Abs(r)))-math.Round(math.Abs(math.Log2(math.Abs(r)))) == 0 {
				m.Kind, m.Times = "weight.bit-flipped", some(r)
			}
			if !yield(m) || len(s.found) > before {
				return
			}
		}
	}
}

// damages are the values that a damaged number may have: a power of two times the old number, the opposite number, 0, and the solved number rounded to the
// model's dtype.
func damages(old, solved float64, e *Entry) []float64 {
	var all []float64
	if old != 0 && solved/old > 0 {
		if k := math.Round(math.Log2(solved / old)); k != 0 {
			all = append(all, old*math.Exp2(k))
		}
	}
	return append(all, -old, 0, floats.Round(e.Call.DType, solved))
}
