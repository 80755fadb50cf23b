package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

const (
	mostOfMatrices = 1 << 25 // elements of the matrices in which rows are looked for
	tokensOfRows   = 8       // tokens that tell rows apart
)

// rowsElsewhere yields matrices with wrong rows, as the channels of the result show them: a wrong row is a different row of the matrix, a row of a
// second matrix of the same width, or 0. A port has wrong rows if it cuts a packed matrix at a wrong place, reads padding, or keeps the order of
// another layout.
func rowsElsewhere(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		p := s.first.Program
		end := &p.Steps[p.Out.Step]
		if end.Prim != program.Affine || s.first != s.entries[0] || p.Steps[end.Args[1].Step].Prim != program.Matrix {
			return
		}
		k := p.Steps[end.Args[1].Step].Index()
		own := s.first.Weights[k]
		names := matricesOf(s.subject, own)
		for _, moves := range []bool{false, true} { // the bias
			if moves && len(end.Args) < 3 {
				continue
			}
			m := rowMistake(rowsOf(s, k, names, moves), names)
			if m.Kind == "" {
				continue
			}
			m.Of, m.Place = weightTerm(own.Name), order.NameOf(own.Name).Role()
			if moves {
				m.Edit = placed(s.first.signed(s.m).PlaceOf(end.Args[2].Step))
			}
			if !yield(m) {
				return
			}
		}
	}
}

// matricesOf lists the weights in which rows are looked for: first own, then the weights that read the same tensor, then other weights of the layer.
func matricesOf(s *subject, own order.Weight) []string {
	own = listedWeight(s, own)
	all := []string{own.Name}
	held := program.Size(own.Shape)
	add := func(w order.Weight) {
		if order.NameOf(own.Name).Path() == order.NameOf(w.Name).Path() && len(w.Shape) == 2 && w.Shape[1] == own.Shape[1] && !slices.Contains(all, w.Name) && held+program.Size(w.Shape) <= mostOfMatrices {
			all, held = append(all, w.Name), held+program.Size(w.Shape)
		}
	}
	if p, ok := jointOf(s, own.Name); ok {
		for _, e := range p.parts {
			add(e.Weights[0])
		}
	}
	for _, w := range s.m.List.Weights() {
		add(w)
	}
	return all
}

// rowsOf returns, for each row of a matrix, the row that the port reads instead in all entries; nil if a row is not found.
func rowsOf(s *search, k int, names []string, moves bool) []rowOf {
	var from []rowOf
	found := origins[int, rowOf]{} // of channels that are wrong in some entry
	for _, e := range s.entries {
		p := e.Program
		end := &p.Steps[p.Out.Step]
		width := p.Out.Last()
		x, ok := s.valueAt(e, end.Args[0])
		matrices := matricesBeside(s.subject, e, k, names)
		if !ok || matrices == nil {
			return nil
		}
		rows, cols := matrices[0].Size()
		if rows != width || from != nil && len(from) != width {
			return nil
		}
		var biases [][]float64
		if len(end.Args) > 2 {
			own, ok := s.valueAt(e, end.Args[2]) // not every program has it as a weight of its own
			if !ok || len(own) != width {
				return nil
			}
			biases = append(biases, own)
			for _, name := range names[1:] {
				bias, _ := biasOf(s.subject, order.NameOf(name).Beside(order.NameOf(e.Weights[k].Name)).String())
				x, _ := vectorOf(s.subject, e, bias)
				biases = append(biases, x)
			}
		}
		if from == nil {
			for i := range width {
				from = append(from, rowOf{0, i})
			}
		}
		y, half := e.Target()
		products, err := newProducts(x[:min(len(y)/width, tokensOfRows)*cols], matrices, cols)
		if s.failed(err) {
			return nil
		}
		if !found.narrow(wrongChannels(e), products.rows, func(c int, r rowOf) bool {
			bias := 0.0
			switch {
			case biases == nil || moves && r.matrix < 0:
			case !moves:
				bias = biases[0][c]
			case len(biases[r.matrix]) <= r.row:
				return false
			default:
				bias = biases[r.matrix][r.row]
			}
			for t := range products.tokens {
				if v, slack := products.at(r, t); !(math.Abs(y[t*width+c]-v-bias) <= 2*half[t*width+c]+slack) {
					return false
				}
			}
			return true
		}) {
			return nil
		}
	}
	for c, may := range found {
		from[c] = may[0]
	}
	return from
}

// wrongChannels lists the channels of an entry's result with unexplained elements.
func wrongChannels(e *Entry) []int {
	width := e.Program.Out.Last()
	var all []int
	for _, i := range e.Left {
		all = append(all, i%width)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// matricesBeside returns the named matrices in the layer of an entry; nil if a matrix cannot be read whole.
func matricesBeside(s *subject, e *Entry, k int, names []string) []program.Rows {
	all := []program.Rows{e.Call.W[k]}
	for _, name := range names[1:] {
		w, ok := s.weightOf(order.NameOf(name).Beside(order.NameOf(e.Weights[k].Name)).String())
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

// products holds the products of some tokens with all rows of some matrices.
type products struct {
	all           []rowOf
	first         []int // by matrix: the index of its first row in all
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

// rows yields the candidates for a row: zeros, then the rows of the matrices.
func (p *products) rows(yield func(rowOf) bool) {
	if !yield(rowOf{-1, 0}) {
		return
	}
	for _, r := range p.all {
		if !yield(r) {
			return
		}
	}
}

// otherRowsOf makes a matrix with rows from elsewhere. If the mistake moves the bias, the numbers of the bias come from the same place.
func otherRowsOf(s *subject, e *Entry, m Mistake) *program.Edited {
	own := listedWeight(s, weightIn(e, m.Place))
	if len(own.Shape) != 2 {
		return nil
	}
	names := matricesOf(s, own)
	from := make([]rowOf, own.Shape[0])
	for i := range from {
		from[i].row = i
	}
	for _, run := range m.Runs.list() {
		matrix := max(slices.IndexFunc(names, func(name string) bool { return order.NameOf(name).Role() == run.Of }), 0)
		if run.To > len(from) || run.Of != "" && matrix == 0 {
			return nil
		}
		for i := run.From; i < run.To; i++ {
			if from[i] = (rowOf{matrix, run.Is + i - run.From}); run.Is < 0 {
				from[i] = rowOf{-1, 0}
			}
		}
	}
	if m.Kind == blocksKind && m.N > 0 {
		for i := m.N; i < len(from); i++ {
			from[i].row = from[i-m.N].row + m.N
		}
	}
	return gathered(s, e, gathering{own.Name, names, from, true, m.Edit != ""})
}

// blocksKind is the mistake of rows that have the same wrong order in all blocks.
const blocksKind Kind = "weight.rows-reordered-in-blocks"

// rowMistake is the mistake of wrong rows; without a kind if all rows are right.
func rowMistake(from []rowOf, names []string) Mistake {
	var runs []sourceRun
	for a := 0; a < len(from); {
		b := a + 1
		for b < len(from) && from[b].matrix == from[a].matrix && (from[a].matrix < 0 || from[b].row == from[a].row+b-a) {
			b++
		}
		if r := from[a]; r != (rowOf{0, a}) {
			run := sourceRun{From: a, To: b, Is: r.row}
			if r.matrix < 0 {
				run.Is = isZero
			} else if r.matrix > 0 {
				run.Of = order.NameOf(names[r.matrix]).Role()
			}
			runs = append(runs, run)
		}
		a = b
	}
	if len(runs) == 0 {
		return Mistake{}
	}
	if n := blockOfRows(from); n > 0 && len(runs) > mostRuns {
		var order []sourceRun
		for i, r := range from[:n] {
			order = append(order, sourceRun{From: i, To: i + 1, Is: r.row})
		}
		return Mistake{Kind: blocksKind, N: n, Runs: makeRuns(order...)}
	}
	m := Mistake{Kind: "weight.rows-others", Runs: makeRuns(runs...)}
	if more := len(runs) - mostRuns; more > 0 {
		m.Kind, m.N = "weight.rows-many-others", more
	}
	return m
}

// blockOfRows is the smallest size of blocks with one order of rows in all blocks, at most half of the rows; 0 without such blocks.
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
