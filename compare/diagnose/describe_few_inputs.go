package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program/edit"
)

// A product whose operand is wrong in a few channels has an error of low rank, and the columns of the matrix for these channels span the error. This tells
// the channels, and then their values, for a matrix of any shape. The columns of few channels do not span the error of other mistakes.

const (
	mostOfMatrix = 1 << 18 // elements of a matrix whose columns are compared with an error
	nearSpan     = 1e-3    // of a length: how far a column or an error may be from a span
)

// fewInputs is the operand of products that is wrong in a few channels, the same in all entries; nil if no few channels give the results.
func fewInputs(s *search, results []observed) *solvedOperand {
	t := s.first.signed(s.m)
	end := &t.Steps[t.Out.Step]
	products := make([]*dense, len(results))
	var channels []int
	for n := range results {
		p := denseOf(s, &results[n])
		if p == nil {
			return nil
		}
		products[n] = p
		if wrong := p.spanned(s, &results[n]); wrong != nil {
			if channels != nil && !slices.Equal(channels, wrong) {
				return nil
			}
			channels = wrong
		}
	}
	if channels == nil {
		return nil
	}
	of := s.value(s.first, end.Args[0])
	all := &solvedOperand{inner{of: of, at: edit.Place{Step: t.PlaceOf(t.Out.Step).Step, Arg: 0}}, Description{Kind: "described.operand", Of: of}}
	for n := range results {
		o := products[n].solve(&results[n], channels)
		if o == nil {
			return nil
		}
		d, err := products[n].given(&results[n], o)
		if s.failed(err) {
			return nil
		}
		all.Explained, all.Elements = all.Explained+d.Explained, all.Elements+d.Elements
		all.all = append(all.all, *o)
	}
	return all
}

// dense is a product with the columns of its matrix.
type dense struct {
	*affine
	columns [][]float64
}

// denseOf is the product at the end of an entry; nil without one, and for a large matrix.
func denseOf(s *search, o *observed) *dense {
	a := wideOf(s, o.e)
	if a == nil || a.rows*a.cols > mostOfMatrix || len(o.want) != len(a.x)/a.cols*a.rows || len(o.want) > mostOfRank {
		return nil
	}
	s.m.work += a.rows * a.cols / 8
	p := &dense{a, make([][]float64, a.cols)}
	for c := range p.columns {
		p.columns[c] = make([]float64, a.rows)
	}
	row := make([]float64, a.cols)
	for r := range a.rows {
		if s.failed(a.w.Row(row, r)) {
			return nil
		}
		for c, v := range row {
			p.columns[c][r] = v
		}
	}
	return p
}

// spanned lists the few channels whose columns span the error of a result, by orthogonal matching pursuit: the next channel is the channel whose column
// has the largest part of the remaining error. It is nil if the error has no low rank, or if few columns do not span it.
func (p *dense) spanned(s *search, o *observed) (channels []int) {
	basis := p.errors(s, o)
	if len(basis) == 0 {
		return nil
	}
	columns, size := make([][]float64, p.cols), make([]float64, p.cols)
	for c, column := range p.columns {
		columns[c], size[c] = slices.Clone(column), length(column)
	}
	for range p.rows / shareOfRank {
		best, most := -1, 0.0
		for c, column := range columns {
			left := length(column)
			if !(left > nearSpan*size[c]) {
				continue
			}
			sum := 0.0
			for _, b := range basis {
				part := dot(column, b) / left
				sum += part * part
			}
			if sum > most {
				best, most = c, sum
			}
		}
		s.m.work += (len(basis) + 1) * p.rows * p.cols
		if best < 0 {
			return nil
		}
		channels = append(channels, best)
		unit := slices.Clone(columns[best])
		by := length(unit)
		for i := range unit {
			unit[i] /= by
		}
		for _, column := range columns {
			without(column, unit)
		}
		rest := 0.0
		for _, b := range basis {
			without(b, unit)
			rest = max(rest, length(b))
		}
		if rest <= nearSpan {
			slices.Sort(channels)
			return channels
		}
	}
	return nil
}

// errors is an orthonormal basis of the errors of all tokens; nil if there is no error, or if there are too few tokens for the rank.
func (p *dense) errors(s *search, o *observed) (basis [][]float64) {
	tokens, most := len(o.want)/p.rows, 0.0
	all := make([][]float64, tokens)
	wrong := 0
	for t := range all {
		all[t] = make([]float64, p.rows)
		has := false
		for r := range p.rows {
			i := t*p.rows + r
			all[t][r], most, has = o.want[i]-o.value[i], max(most, off(o, i)), has || wrongElement(o, i)
		}
		if has {
			wrong++
		}
	}
	if !(most-most == 0) {
		return nil
	}
	for {
		s.m.work += len(o.want) / 8
		largest, size := all[0], 0.0
		for _, row := range all {
			if n := length(row); n > size {
				largest, size = row, n
			}
		}
		if !(size > rankSlack*most*math.Sqrt(float64(p.rows))) {
			return basis
		}
		if (len(basis)+1)*shareOfRank > min(wrong, p.rows) {
			return nil
		}
		b := slices.Clone(largest)
		for i := range b {
			b[i] /= size
		}
		basis = append(basis, b)
		for _, row := range all {
			without(row, b)
		}
	}
}

// solve is the operand whose channels give a result, by least squares. It is nil if the columns of the channels do not determine them.
func (p *dense) solve(o *observed, channels []int) *observed {
	n, tokens := len(channels), len(o.want)/p.rows
	got := &observed{value: p.x, off: make([]float64, len(p.x)), want: slices.Clone(p.x), half: make([]float64, len(p.x)), shape: []int{tokens, p.cols}, axes: "tc", e: o.e}
	for t := range tokens {
		gram, right := make([]float64, n*n), make([]float64, n*n)
		size := 0.0
		for r := range p.rows {
			i := t*p.rows + r
			size = max(size, off(o, i))
			for a, c := range channels {
				right[a*n] += p.columns[c][r] * (o.want[i] - o.value[i])
				for b, d := range channels {
					gram[a*n+b] += p.columns[c][r] * p.columns[d][r]
				}
			}
		}
		narrow := make([]float64, n)
		for a := range n {
			narrow[a] = math.Sqrt(gram[a*n+a])
		}
		if !eliminated(gram, right, n) {
			return nil
		}
		for a, c := range channels {
			got.want[t*p.cols+c] += right[a*n]
			got.half[t*p.cols+c] = operandSlack * size * math.Sqrt(float64(p.rows)) / narrow[a]
		}
	}
	return got
}

// length is the Euclidean length of a vector.
func length(x []float64) float64 { return math.Sqrt(dot(x, x)) }

// dot is the product of two vectors.
func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// without takes the part along a unit vector off a vector.
func without(x, unit []float64) {
	part := dot(x, unit)
	for i := range x {
		x[i] -= part * unit[i]
	}
}
