package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	mostOperand  = 768  // columns of a matrix whose operand is solved
	tall         = 1.5  // rows of the matrix for each column, at least: with fewer rows any result has an operand
	rowsOfSquare = 4    // rows for each column in the solution
	mostSpread   = 1e4  // of the matrix: the largest pivot for each unit of the smallest
	operandSlack = 4    // how many times its error a solved operand may be off
	mostAlike    = 0.75 // of the elements that the right operand may give within the error: with more, any operand near the right one does so too
)

// describeOperand describes products with a matrix that has more rows than columns, by the operand with which the product would be the trace's tensor. If
// there is no such operand, the matrix is wrong, or a step after the product. It is nil for other entries.
func describeOperand(x *difference) *Description {
	o := x.operand()
	if o == nil {
		return nil
	}
	switch d := &o.Description; {
	case float64(d.Explained) < (1-leastShare)*float64(d.Elements):
		t := x.first.signed(x.m)
		d.Kind, d.Of = "described.no-operand", weightTerm(x.first.Weights[t.Steps[t.Steps[t.Out.Step].Args[1].Step].Index()].Name)
		return d
	case !o.gives():
		return nil
	}
	if d := mixedOperand(x, o); d != nil {
		return d
	}
	if d := channelsAmong(o.all, o.of); d != nil {
		return d
	}
	return &o.Description
}

// solvedOperand is the operand of the product at the end of the entries, as the results need it.
type solvedOperand struct {
	inner
	Description // counts the elements that the operand gives
}

// gives reports whether the operand gives nearly all elements.
func (o *solvedOperand) gives() bool {
	return float64(o.Explained) >= leastShare*float64(o.Elements)
}

// operandOfProducts is nil if the operands do not follow from the results.
func operandOfProducts(s *search, results []observed) *solvedOperand {
	t := s.first.signed(s.m)
	end := &t.Steps[t.Out.Step]
	if end.Prim != program.Affine || t.Steps[end.Args[1].Step].Prim != program.Matrix {
		return nil
	}
	of := s.value(s.first, end.Args[0])
	all := &solvedOperand{inner{of: of, at: edit.Place{Step: t.PlaceOf(t.Out.Step).Step, Arg: 0}}, Description{Kind: "described.operand", Of: of}}
	for n := range results {
		o, d, err := operandOf(s, &results[n])
		if s.failed(err) || o == nil {
			return nil
		}
		all.Explained, all.Elements = all.Explained+d.Explained, all.Elements+d.Elements
		all.all = append(all.all, *o)
	}
	return all
}

// mixedOperand describes an operand whose channels are sums of channels of the right operand.
func mixedOperand(x *difference, o *solvedOperand) *Description {
	m := mixture{of: theResult, n: o.all[0].shape[1], at: 1}
	var values [][]float64
	for n := range o.all {
		values = append(values, o.all[n].value)
	}
	if m.n < 2 || m.n > mostMixed || !m.solve(o.all, values) {
		return nil
	}
	d := m.description(o.all, values)
	if d == nil {
		return nil
	}
	d.Of, d.Like = o.of, o.of
	x.draft(d).proposes = m.mistakes(order.AxisChannel, o.of, o.at)
	return d
}

// affine is a product of an entry: an operand for each token, a matrix, and a bias for each row.
type affine struct {
	x, bias    []float64
	w          program.Rows
	rows, cols int
}

// affineOf is the product at the end of an entry's program. It is nil if the matrix has too few rows to determine the operand, or is too large.
func affineOf(s *search, e *Entry) *affine {
	a := wideOf(s, e)
	if a == nil || a.cols > mostOperand || float64(a.rows) < tall*float64(a.cols) || len(a.x)/a.cols*a.rows != program.Size(e.Program.Out.Shape) {
		return nil
	}
	return a
}

// operandOf solves the operand of an entry, token by token, by least squares. The description counts the elements that the operand gives. The operand is
// nil if the matrix does not determine it, and if the right operand gives most elements within the same error.
func operandOf(s *search, o *observed) (*observed, *Description, error) {
	a := affineOf(s, o.e)
	if a == nil || len(o.want) != len(a.x)/a.cols*a.rows {
		return nil, nil, s.err
	}
	alike := 0
	for i, y := range o.want {
		if math.Abs(o.value[i]-y) <= off(o, i) {
			alike++
		}
	}
	if float64(alike) > mostAlike*float64(len(o.want)) {
		return nil, nil, nil
	}
	each := max(a.rows/(rowsOfSquare*a.cols), 1)
	square, err := newSquare(a.w, each)
	s.m.work += a.rows / each * a.cols * a.cols / 8
	if square == nil || err != nil {
		return nil, nil, err
	}
	n, tokens := len(a.x), len(a.x)/a.cols
	got := &observed{value: a.x, off: make([]float64, n), want: make([]float64, n), half: make([]float64, n), shape: []int{tokens, a.cols}, axes: "tc", e: o.e}
	for token := range tokens {
		y, size := make([]float64, a.rows), 0.0
		for r := range y {
			i := token*a.rows + r
			y[r] = o.want[i] - a.bias[r]
			size += (o.half[i] + o.off[i]) * (o.half[i] + o.off[i]) / float64(a.rows)
		}
		if err := square.solve(a.w, y, got.want[token*a.cols:][:a.cols]); err != nil {
			return nil, nil, err
		}
		for c := range a.cols {
			got.half[token*a.cols+c] = operandSlack * math.Sqrt(size) * square.error[c]
		}
	}
	d, err := a.given(o, got)
	return got, d, err
}

// given counts the elements of a result that an operand gives.
func (a *affine) given(o, operand *observed) (*Description, error) {
	d := &Description{Elements: len(o.want)}
	row := make([]float64, a.cols)
	for r := range a.rows {
		if err := a.w.Row(row, r); err != nil {
			return nil, err
		}
		for token := range len(a.x) / a.cols {
			i, sum, size := token*a.rows+r, a.bias[r], 0.0
			for c, v := range row {
				sum += v * operand.want[token*a.cols+c]
				size += math.Abs(v) * operand.half[token*a.cols+c]
			}
			if math.Abs(sum-o.want[i]) <= off(o, i)+size {
				d.Explained++
			}
		}
	}
	return d, nil
}

// square is the Cholesky factor of WᵀW, of some rows of a matrix.
type square struct {
	n, each int
	factor  []float64 // lower triangle, row by row
	error   []float64 // by column: the error of the operand for an error of 1 in each row
}

// newSquare uses every n-th row of a matrix, where n is each. It is nil if these rows determine the operand badly.
func newSquare(w program.Rows, each int) (*square, error) {
	rows, n := w.Size()
	q := &square{n, each, make([]float64, n*n), make([]float64, n)}
	row := make([]float64, n)
	for r := 0; r < rows; r += each {
		if err := w.Row(row, r); err != nil {
			return nil, err
		}
		for i, v := range row {
			if v != 0 {
				for j, u := range row[:i+1] {
					q.factor[i*n+j] += v * u
				}
			}
		}
	}
	low, high := math.Inf(1), 0.0
	for i := range n {
		for j := range i + 1 {
			sum := q.factor[i*n+j]
			for k := range j {
				sum -= q.factor[i*n+k] * q.factor[j*n+k]
			}
			if i == j {
				if !(sum > 0) {
					return nil, nil
				}
				d := math.Sqrt(sum)
				q.factor[i*n+i], low, high = d, min(low, d), max(high, d)
				continue
			}
			q.factor[i*n+j] = sum / q.factor[j*n+j]
		}
	}
	if high > mostSpread*low {
		return nil, nil
	}
	unit := make([]float64, n)
	for c := range n {
		clear(unit)
		unit[c] = 1
		q.halfway(unit)
		for _, v := range unit { // the diagonal of the inverse
			q.error[c] += v * v
		}
		q.error[c] = math.Sqrt(q.error[c])
	}
	return q, nil
}

// halfway solves with the factor, in place.
func (q *square) halfway(x []float64) {
	for i := range q.n {
		for k := range i {
			x[i] -= q.factor[i*q.n+k] * x[k]
		}
		x[i] /= q.factor[i*q.n+i]
	}
}

// solve adds the operand of one token to x, from the result y of the token.
func (q *square) solve(w program.Rows, y, x []float64) error {
	row := make([]float64, q.n)
	for r := 0; r < len(y); r += q.each {
		if err := w.Row(row, r); err != nil {
			return err
		}
		for c, v := range row {
			x[c] += v * y[r]
		}
	}
	q.halfway(x)
	for i := q.n - 1; i >= 0; i-- {
		for k := i + 1; k < q.n; k++ {
			x[i] -= q.factor[k*q.n+i] * x[k]
		}
		x[i] /= q.factor[i*q.n+i]
	}
	return nil
}
