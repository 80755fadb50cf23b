package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// A weight that was not loaded keeps the random numbers with which a framework begins. From a random matrix with independent elements of one standard
// deviation s, a product gives results y = x·Wᵀ with three properties. Between two tokens, the results have the same cosine as the operands. Along each of
// some orthonormal directions of the operands, the results are like normal numbers of deviation s. And the results are not related to the results of the
// right matrix. These properties are tests of statistics: nearly every random matrix passes them.

const (
	leastOfMatrix = 32   // rows of a matrix, at least
	mostPicked    = 512  // rows of a matrix, at most
	leastWays     = 3    // directions of the operands, at least
	mostWays      = 64   // tokens, at most
	leastRest     = 0.03 // of the length of an operand: the part that is orthogonal to the directions before it
	deviations    = 5    // standard errors that a statistic may be off
	leastDrift    = 0.1  // between the logarithms of the deviations of the matrix and of the right matrix, at least
)

// whitened has the results of products along orthonormal directions of the operands: a row for each direction.
type whitened struct {
	port, right [][]float64 // the results of the port, and of the right matrix
	related     float64     // the sum of the squared cosines between different operands
}

// unrelatedWeight is the standard deviation of a random matrix that gives the results of a product. It is 0 if the results do not look like this, if they
// tell too little, and if the right matrix has the same deviation: the right matrix with its elements in another order would look the same.
func unrelatedWeight(s *search) float64 {
	var groups [][]*Entry // by weight
	for _, e := range s.entries {
		if !endsWithMatrix(e) {
			return 0
		}
		k := slices.IndexFunc(groups, func(g []*Entry) bool { return weightAtEnd(g[0]).Name == weightAtEnd(e).Name })
		if k < 0 {
			k, groups = len(groups), append(groups, nil)
		}
		groups[k] = append(groups[k], e)
	}
	sum := 0.0
	for _, g := range groups {
		deviation := whiten(s, g, true).random()
		if p := g[0].Program; deviation == 0 && len(p.Steps[p.Out.Step].Args) > 2 { // a bias that was not loaded is 0
			deviation = whiten(s, g, false).random()
		}
		if deviation == 0 {
			return 0
		}
		sum += deviation * deviation
	}
	return math.Sqrt(sum / float64(len(groups)))
}

// weightAtEnd is the weight of the product at the end of an entry's program.
func weightAtEnd(e *Entry) order.Weight { return e.Weights[weightIndexAtEnd(e)] }

// weightIndexAtEnd is the number of this weight in the entry.
func weightIndexAtEnd(e *Entry) int {
	p := e.Program
	return p.Steps[p.Steps[p.Out.Step].Args[1].Step].Index()
}

// endsWithMatrix reports whether an entry's program ends with a product with a matrix.
func endsWithMatrix(e *Entry) bool {
	p := e.Program
	end := &p.Steps[p.Out.Step]
	return end.Prim == program.Affine && p.Steps[end.Args[1].Step].Prim == program.Matrix
}

// random is the standard deviation of a random matrix with the port's results. It is 0 if the results do not look like the results of a random matrix. It is
// also 0 if the right matrix has this deviation, since the port may have its elements in another order, and without results.
func (w *whitened) random() float64 {
	if w == nil {
		return 0
	}
	ways, rows := float64(len(w.port)), float64(len(w.port[0]))
	pairs, n := ways*(ways-1)/2, ways*rows
	if w.related*rows < 3*(pairs+deviations*math.Sqrt(2*pairs)) { // the operands are so different that others would do as well
		return 0
	}
	power, right, fourth, cosines := 0.0, 0.0, 0.0, 0.0
	for i, a := range w.port {
		power, right = power+dot(a, a), right+dot(w.right[i], w.right[i])
		for _, v := range a {
			fourth += v * v * v * v
		}
		for _, b := range w.port[:i] {
			c := dot(a, b) / (length(a) * length(b))
			cosines += c * c
		}
	}
	spread := 0.0 // between the directions
	for _, a := range w.port {
		off := dot(a, a)/power*ways - 1
		spread += off * off
	}
	tails, drift := fourth*n/(power*power)-3, math.Abs(math.Log(power/right))/2
	switch {
	case !likeChiSquared(cosines*rows, pairs), !likeChiSquared(spread*rows/2, ways-1), !(math.Abs(tails) <= deviations*math.Sqrt(24/n)):
		return 0
	case !(drift >= max(leastDrift, deviations/math.Sqrt(2*n))):
		return 0
	case !(inSpan(w.port, w.right) <= ways/rows+deviations*math.Sqrt2/rows):
		return 0
	}
	return math.Sqrt(power / n)
}

// likeChiSquared reports whether a sum of squares is not too large for its degrees of freedom.
func likeChiSquared(sum, freedom float64) bool { return sum <= freedom+deviations*math.Sqrt(2*freedom) }

// whiten turns results of one weight to orthonormal directions of the operands, by the modified Gram-Schmidt process over the tokens. It is nil if there
// are too few rows or directions.
func whiten(s *search, entries []*Entry, bias bool) *whitened {
	var all []someProduct
	for _, e := range entries {
		all = append(all, someProducts(s, e, bias, mostWays-len(all))...)
	}
	if len(all) < leastWays || len(all[0].port) < leastOfMatrix {
		return nil
	}
	w := &whitened{}
	whole := make([]float64, len(all))
	for t, a := range all {
		whole[t] = length(a.operand)
		for u, b := range all[:t] {
			if l := whole[t] * whole[u]; l > 0 {
				c := dot(a.operand, b.operand) / l
				w.related += c * c
			}
		}
	}
	s.m.work += len(all) * len(all) * len(all[0].operand) / 8
	for t, a := range all {
		rest := length(a.operand)
		if !(rest > leastRest*whole[t]) || len(w.port) == len(a.port)/4 {
			continue
		}
		for _, v := range [][]float64{a.operand, a.port, a.right} {
			for i := range v {
				v[i] /= rest
			}
		}
		for _, b := range all[t+1:] {
			by := dot(a.operand, b.operand)
			subtract(b.operand, a.operand, by)
			subtract(b.port, a.port, by)
			subtract(b.right, a.right, by)
		}
		w.port, w.right = append(w.port, a.port), append(w.right, a.right)
	}
	if len(w.port) < leastWays {
		return nil
	}
	return w
}

// someProduct has the operand of a product for one token, and results for some rows of the matrix, without the bias.
type someProduct struct{ operand, port, right []float64 }

// someProducts computes the product at the end of an entry for some of its tokens, and for rows of the matrix at equal distances.
func someProducts(s *search, e *Entry, bias bool, most int) []someProduct {
	end := &e.Program.Steps[e.Program.Out.Step]
	w := e.Call.W[e.Program.Steps[end.Args[1].Step].Index()]
	rows, cols := w.Size()
	y, _ := e.Target()
	x, ok := s.valueAt(e, end.Args[0])
	if !ok || len(x)%cols != 0 || len(y) != len(x)/cols*rows {
		return nil
	}
	var added []float64
	if bias && len(end.Args) > 2 {
		if added, ok = s.valueAt(e, end.Args[2]); !ok || len(added) < rows {
			return nil
		}
	}
	all := make([]someProduct, min(len(x)/cols, most))
	for t := range all {
		all[t].operand = slices.Clone(x[t*cols:][:cols])
	}
	picked := min(rows, mostPicked)
	row := make([]float64, cols)
	for k := range picked {
		r := k * rows / picked
		if s.failed(w.Row(row, r)) {
			return nil
		}
		for t := range all {
			v := y[t*rows+r]
			if added != nil {
				v -= added[r]
			}
			all[t].port, all[t].right = append(all[t].port, v), append(all[t].right, dot(row, all[t].operand))
		}
	}
	s.m.work += picked * cols * (len(all) + 1) / 8
	return all
}

// subtract subtracts a multiple of a row from another row.
func subtract(from, row []float64, by float64) {
	for i, v := range row {
		from[i] -= by * v
	}
}

// inSpan is the share of some rows that lies in the span of other rows: the mean of the squared cosines.
func inSpan(rows, of [][]float64) float64 {
	var basis [][]float64
	for _, row := range of {
		v, whole := slices.Clone(row), length(row)
		for _, b := range basis {
			subtract(v, b, dot(v, b))
		}
		if l := length(v); l > leastRest*whole {
			for i := range v {
				v[i] /= l
			}
			basis = append(basis, v)
		}
	}
	sum := 0.0
	for _, row := range rows {
		whole := dot(row, row)
		for _, b := range basis {
			c := dot(row, b)
			sum += c * c / whole
		}
	}
	return sum / float64(len(rows))
}

// randomWeights states that the weight of a product is random. The elements are the port's own: the tests of statistics are the proof.
func randomWeights(s *search) error {
	deviation := unrelatedWeight(s)
	if deviation == 0 || s.err != nil {
		return s.err
	}
	if o := s.differs.operand(); o != nil && o.gives() {
		return nil
	}
	if like, err := s.likeAnother(deviation); like || err != nil {
		return err
	}
	r := Relation{Kind: "weight.random", Of: weightTerm(weightAtEnd(s.first).Name), X: some(inDigits(deviation, 2))}
	var of []*Entry
	for _, e := range s.entries {
		of = append(of, e, e.Small())
	}
	return s.state(statement{Relation: r, of: of, solved: 1})
}

// likeAnother reports whether another weight of the layer with as many elements has nearly a standard deviation: the port may have read that weight, in some
// shape or order.
func (s *search) likeAnother(deviation float64) (bool, error) {
	own := weightAtEnd(s.first)
	layer := order.NameOf(own.Name)
	for k := range s.m.List.Entries {
		for _, w := range s.m.List.Entries[k].Weights {
			if w.Name == own.Name || len(w.Shape) != 2 || program.Size(w.Shape) != program.Size(own.Shape) || order.NameOf(w.Name).Within() && !order.NameOf(w.Name).SameLayer(layer) {
				continue
			}
			rows, err := s.m.Weights(w)
			if err != nil {
				return false, err
			}
			n, cols := rows.Size()
			row, sum, picked := make([]float64, cols), 0.0, min(n, mostPicked)
			for r := range picked {
				if err := rows.Row(row, r*n/picked); err != nil {
					return false, err
				}
				sum += dot(row, row)
			}
			s.m.work += picked * cols / 8
			if drift := math.Abs(math.Log(math.Sqrt(sum/float64(picked*cols)) / deviation)); !(drift >= leastDrift) {
				return true, nil
			}
		}
	}
	return false, nil
}
