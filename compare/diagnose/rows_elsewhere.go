package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// rowOf is a row of one of some matrices; matrix −1 is for zeros.
type rowOf struct{ matrix, row int }

const (
	mostOfMatrices = 1 << 25 // elements of the matrices in which rows are looked for
	tokensOfRows   = 8       // tokens by which a row is told
	mostRuns       = 3       // runs of rows that are told one by one
)

// rowsElsewhere looks at the result of a matrix channel by channel: each may be that of another row of the matrix, of a row of another
// matrix that reads tensors of the width, or 0. So it is where a packed matrix is cut at another place, where there is padding, or where
// rows are in the order of another layout.
func (s *search) rowsElsewhere() error {
	p := s.first.Program
	end := &p.Steps[p.Source(p.Out)]
	if end.Prim != program.Affine || s.first != s.entries[0] || p.Steps[p.Source(end.Args[1])].Prim != program.Matrix {
		return nil
	}
	k := p.Steps[p.Source(end.Args[1])].Index
	own := s.first.Weights[k]
	names := s.matricesOf(own)
	for _, moves := range []bool{false, true} { // the bias
		if moves && len(end.Args) < 3 {
			continue
		}
		from, err := s.rowsOf(k, names, moves)
		if err != nil {
			return err
		}
		m, solved := rowMistake(from, names)
		if solved == 0 {
			continue
		}
		m.Of, m.Place = weightTerm(own.Name), Role(own.Name)
		if err := s.try(hypothesis{
			class: program.Leaf, solved: solved, say: func(*Entry) Name { return m.name() },
			make: func(e *Entry) *program.Edited { return s.gathered(e, k, names, from, moves) },
		}); err != nil {
			return err
		}
	}
	return nil
}

// matricesOf are the weights in which rows are looked for: the own one first, those that read the same tensor, and others of the layer.
func (s *search) matricesOf(own order.Weight) []string {
	all := []string{own.Name}
	held := product(own.Shape)
	add := func(w order.Weight) {
		a, _ := layerOf(own.Name)
		if b, _ := layerOf(w.Name); a == b && len(w.Shape) == 2 && w.Shape[1] == own.Shape[1] && !slices.Contains(all, w.Name) && held+product(w.Shape) <= mostOfMatrices {
			all, held = append(all, w.Name), held+product(w.Shape)
		}
	}
	for _, e := range s.beside(own.Name) {
		add(e.Weights[0])
	}
	for i := range s.m.List.Entries {
		for _, w := range s.m.List.Entries[i].Weights {
			add(w)
		}
	}
	return all
}

// biasBeside is the bias of the operation that has a matrix; nil where it has none.
func (s *subject) biasBeside(e *Entry, matrix string) []float64 {
	for i := range s.m.List.Entries {
		w := s.m.List.Entries[i].Weights
		if len(w) < 2 || w[0].Name != matrix || len(w[1].Shape) != 1 {
			continue
		}
		x, _ := s.vector(e, w[1].Name, 0)
		return x
	}
	return nil
}

// rowsOf says of each row of a matrix which one it is in all entries; nil where one is none.
func (s *search) rowsOf(k int, names []string, moves bool) ([]rowOf, error) {
	var from []rowOf
	open := map[int][]rowOf{} // of each channel that is another one in some entry: what it may be
	for _, e := range s.entries {
		p := e.Program
		end := &p.Steps[p.Source(p.Out)]
		width := p.Out.Last()
		x, ok := s.valueAt(e, end.Args[0])
		matrices := s.matricesBeside(e, k, names)
		if !ok || matrices == nil {
			return nil, s.err
		}
		if rows, _ := matrices[0].Size(); rows != width || from != nil && len(from) != width {
			return nil, nil
		}
		var biases [][]float64
		if len(end.Args) > 2 {
			for _, name := range names {
				biases = append(biases, s.biasBeside(e, beside(name, e.Weights[k].Name)))
			}
		}
		if from == nil {
			for i := range width {
				from = append(from, rowOf{0, i})
			}
		}
		y, half := e.Target()
		_, cols := matrices[0].Size()
		tokens := min(len(y)/width, tokensOfRows)
		wrong := map[int]bool{}
		for _, i := range e.Left {
			wrong[i%width] = true
		}
		products, err := newProducts(x[:tokens*cols], matrices, cols)
		if err != nil {
			return nil, err
		}
		good := func(c int, r rowOf) bool {
			for t := range tokens {
				v, slack := products.at(r, t)
				if biases != nil && (!moves || r.matrix < 0) {
					v += biases[0][c]
				} else if biases != nil {
					if len(biases[r.matrix]) <= r.row {
						return false
					}
					v += biases[r.matrix][r.row]
				}
				if !(math.Abs(y[t*width+c]-v) <= 2*half[t*width+c]+slack) {
					return false
				}
			}
			return true
		}
		for c := range wrong {
			if _, seen := open[c]; !seen {
				open[c] = append([]rowOf{{-1, 0}}, products.all...)
			}
		}
		for c, may := range open {
			if open[c] = slices.DeleteFunc(slices.Clone(may), func(r rowOf) bool { return !good(c, r) }); len(open[c]) == 0 {
				return nil, nil
			}
		}
	}
	for c, may := range open {
		from[c] = may[0]
	}
	return from, nil
}

// matricesBeside are matrices of the layer of an entry; nil where one cannot be had whole.
func (s *subject) matricesBeside(e *Entry, k int, names []string) []program.Rows {
	var all []program.Rows
	for n, name := range names {
		if n == 0 {
			all = append(all, e.Call.W[k])
			continue
		}
		w, ok := s.weightOf(beside(name, e.Weights[k].Name))
		if !ok {
			return nil
		}
		rows, err := s.m.Weights(w)
		if s.failed(err) {
			return nil
		}
		all = append(all, rows)
	}
	return all
}

// products are the products of some tokens with all rows of some matrices.
type products struct {
	all           []rowOf
	first         []int // of each matrix: the number of its first row
	values, slack []float64
	tokens        int
}

func newProducts(x []float64, matrices []program.Rows, cols int) (*products, error) {
	p := &products{tokens: len(x) / cols}
	row := make([]float64, cols)
	for m, w := range matrices {
		p.first = append(p.first, len(p.all))
		rows, _ := w.Size()
		for i := range rows {
			if err := w.Row(row, i); err != nil {
				return nil, err
			}
			p.all = append(p.all, rowOf{m, i})
			for t := range p.tokens {
				sum, size := 0.0, 0.0
				for c, v := range row {
					d := v * x[t*cols+c]
					sum, size = sum+d, size+math.Abs(d)
				}
				p.values, p.slack = append(p.values, sum), append(p.slack, 0x1p-19*size)
			}
		}
	}
	return p, nil
}

func (p *products) at(r rowOf, token int) (v, slack float64) {
	if r.matrix < 0 {
		return 0, 0
	}
	i := (p.first[r.matrix]+r.row)*p.tokens + token
	return p.values[i], p.slack[i]
}

// elsewhere are rows of several matrices.
type elsewhere struct {
	matrices []program.Rows
	from     []rowOf
}

func (w elsewhere) Size() (rows, cols int) {
	_, cols = w.matrices[0].Size()
	return len(w.from), cols
}

func (w elsewhere) Row(dst []float64, i int) error {
	if w.from[i].matrix < 0 {
		clear(dst)
		return nil
	}
	return w.matrices[w.from[i].matrix].Row(dst, w.from[i].row)
}

// one is a vector as a weight.
type one []float64

func (v one) Size() (rows, cols int) { return 1, len(v) }

func (v one) Row(dst []float64, _ int) error {
	copy(dst, v)
	return nil
}

// gathered has the rows of a matrix from elsewhere, and the elements of its bias where that moves with them.
func (s *subject) gathered(e *Entry, k int, names []string, from []rowOf, moves bool) *program.Edited {
	matrices := s.matricesBeside(e, k, names)
	if matrices == nil {
		return nil
	}
	if rows, _ := matrices[0].Size(); rows != len(from) { // some alone are kept of it
		return nil
	}
	t, ed := e.signed(s.m), e.Program.Edit()
	for i := range t.Steps {
		st := &t.Steps[i]
		switch {
		case st.Prim == program.Matrix && st.Index == k:
			ed.OtherWeight(i, elsewhere{matrices, from})
		case st.Prim == program.Weight && moves:
			bias := make(one, len(from))
			for c, r := range from {
				if r.matrix >= 0 {
					of := s.biasBeside(e, beside(names[r.matrix], e.Weights[k].Name))
					if r.row >= len(of) {
						return nil
					}
					bias[c] = of[r.row]
				}
			}
			ed.OtherWeight(i, bias)
		}
	}
	return ended(ed)
}

// mostListed is how many rows of a block are listed in the order that they have.
const mostListed = 16

// rowMistake is the mistake of wrong rows, and how many numbers were solved: the number of runs, or the number of rows of a block if all blocks have one
// order.
func rowMistake(from []rowOf, names []string) (m Mistake, solved int) {
	var runs []Run
	for a := 0; a < len(from); {
		b := a + 1
		for b < len(from) && from[b].matrix == from[a].matrix && (from[a].matrix < 0 || from[b].row == from[a].row+b-a) {
			b++
		}
		if r := from[a]; r != (rowOf{0, a}) {
			run := Run{From: a, To: b, Is: r.row}
			if r.matrix < 0 {
				run.Is = -1
			} else if r.matrix > 0 {
				run.Of = Role(names[r.matrix])
			}
			runs = append(runs, run)
		}
		a = b
	}
	if len(runs) == 0 {
		return m, 0
	}
	if n := blockOfRows(from); n > 0 && len(runs) > mostRuns {
		var order []Run
		for i, r := range from[:min(n, mostListed)] {
			order = append(order, Run{From: i, To: i + 1, Is: r.row})
		}
		return Mistake{Kind: "weight.rows-reordered-in-blocks", N: n, Runs: makeRuns(order...)}, n
	}
	m = Mistake{Kind: "weight.rows-others", Runs: makeRuns(runs[:min(len(runs), mostRuns)]...)}
	if more := len(runs) - mostRuns; more > 0 {
		m.Kind, m.N = "weight.rows-many-others", more
	}
	return m, len(runs)
}

// blockOfRows is the smallest number of rows of which all have one order, and that are a half of all at most; 0 where there is none.
func blockOfRows(from []rowOf) int {
	for n := 2; n <= len(from)/2; n++ {
		if len(from)%n != 0 {
			continue
		}
		same := true
		for i, r := range from {
			same = same && r.matrix == 0 && r.row/n == i/n && r.row%n == from[i%n].row
		}
		if same {
			return n
		}
	}
	return 0
}
