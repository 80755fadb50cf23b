package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// damaged looks for one number of a matrix that is another one, as where a bit is flipped, and for columns at its end that are 0: what
// is left is then one channel of the result, or follows from fewer inputs.
func (s *search) damaged() error {
	t := s.first.signed(s.m)
	for _, i := range leafSteps(t, program.Matrix) {
		at := t.Of(i)
		if err := s.cutColumns(at, t.Steps[i].Index); err != nil {
			return err
		}
		if err := s.oneNumber(at, t.Steps[i].Index); err != nil {
			return err
		}
		if err := s.scales(at, t.Steps[i].Index); err != nil {
			return err
		}
	}
	return nil
}

// mostCut is how many columns at the end of a matrix are tried as 0.
const mostCut = 8

// mostTile is the largest tile in which a sum over columns may be taken.
const mostTile = 256

// cutColumns tries 0 in the last columns of a matrix.
func (s *search) cutColumns(at program.Place, k int) error {
	_, cols := s.first.Call.W[k].Size()
	var cuts []int
	for n := 1; n <= min(mostCut, cols-1); n++ {
		cuts = append(cuts, n)
	}
	for tile := 2 * mostCut; tile < cols && tile <= mostTile; tile *= 2 { // what is behind the last whole tile
		if n := cols % tile; n > 0 && !slices.Contains(cuts, n) {
			cuts = append(cuts, n)
		}
	}
	for _, n := range cuts {
		m := Mistake{Kind: "weight.columns-cut", Of: weightTerm(s.first.Weights[k].Name), N: n, M: cols, Place: Role(s.first.Weights[k].Name)}
		if err := s.try(hypothesis{
			class: program.Leaf, solved: 1, say: func(*Entry) Name { return m.name() },
			make: func(e *Entry) *program.Edited {
				return s.reweighted(e, at, func(k int) program.Rows {
					return changed{e.Call.W[k], func(row []float64) { clear(row[max(len(row)-n, 0):]) }}
				})
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// only is a matrix with one number of one row changed.
type only struct {
	program.Rows
	row, col int
	value    float64
}

func (w only) Row(dst []float64, i int) error {
	err := w.Rows.Row(dst, i)
	if i == w.row {
		dst[w.col] = w.value
	}
	return err
}

// Product is that of the matrix.
func (w only) Product(x, bound []float64) program.Product {
	p := program.ProductOf(w.Rows, x, bound)
	p.W = only{p.W, w.row, w.col, w.value}
	return p
}

// oneNumber looks for the number of a matrix with which the one channel that is left is right: the difference of the channel is then its
// input times the difference of the number, token by token.
func (s *search) oneNumber(at program.Place, k int) error {
	e := s.entries[0]
	if s.first != e || len(e.Left) < shownRows {
		return nil
	}
	p, width := e.Program, e.Program.Out.Last()
	channel := e.Left[0] % width
	for _, o := range s.entries {
		if o.Program.Out.Last() != width || slices.ContainsFunc(o.Left, func(i int) bool { return i%width != channel }) || s.m.List.Entries[o.Node.Entry].Name != s.m.List.Entries[e.Node.Entry].Name {
			return nil
		}
	}
	steps := e.signed(s.m).Copies(at)
	affine := p.Source(p.Out)
	if len(steps) != 1 || p.Steps[affine].Prim != program.Affine || p.Source(p.Steps[affine].Args[1]) != steps[0] {
		return nil
	}
	x, ok := s.valueAt(e, p.Steps[affine].Args[0])
	own, has := s.valueOf(e, nil)
	rows, cols := e.Call.W[k].Size()
	if !ok || !has || channel >= rows || len(x)%cols != 0 {
		return nil
	}
	y, _ := e.Target()
	row := make([]float64, cols)
	if s.failed(e.Call.W[k].Row(row, channel)) {
		return s.err
	}
	best, col, value := math.Inf(1), -1, 0.0
	for c := range cols {
		var xd, xx, dd float64 // the difference as a multiple of the input, and what that leaves of it
		for r := range len(y) / width {
			d, in := y[r*width+channel]-own.Data[r*width+channel], x[r*cols+c]
			xd, xx, dd = xd+in*d, xx+in*in, dd+d*d
		}
		if rest := dd - xd*xd/xx; xx > 0 && rest < best {
			best, col, value = rest, c, row[c]+xd/xx
		}
	}
	if col < 0 {
		return nil
	}
	name := Role(e.Weights[k].Name)
	for _, v := range damages(row[col], value, e) {
		m := Mistake{Kind: "weight.one-number", Of: weightTerm(name), N: channel, M: col, By: literal(v), For: literal(row[col]), Place: name}
		if r := v / row[col]; math.Abs(math.Log2(math.Abs(r)))-math.Round(math.Abs(math.Log2(math.Abs(r)))) == 0 {
			m.Kind, m.Times = "weight.bit-flipped", some(r)
		}
		before := len(s.found)
		if err := s.try(hypothesis{
			class: program.Leaf, solved: 1, say: func(*Entry) Name { return m.name() },
			make: func(e *Entry) *program.Edited {
				return s.reweighted(e, at, func(k int) program.Rows { return only{e.Call.W[k], channel, col, v} })
			},
		}); err != nil || len(s.found) > before {
			return err
		}
	}
	return nil
}

// damages are what a number may have become that was solved: powers of two times it, its opposite, 0, and the nearest number of the
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
