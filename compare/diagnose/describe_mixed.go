package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	mostMixed    = 64    // indexes of an axis with mixtures
	leastOfMixed = 2     // elements of each index, for each coefficient
	mostWholes   = 8     // the largest whole-number coefficient
	nearWhole    = 0.02  // how far a solved coefficient may be from a whole number
	mostTerms    = 4     // coefficients of an index that are not 0, at most
	mostSingular = 1e-10 // of the largest diagonal element: smaller pivots are singular
)

// mixtures describes results in which each head, token or channel is a sum of a few heads, tokens or channels of the right result, or of a value of the
// same shape in the program. The coefficients are whole numbers, and the same at all other indexes.
func mixtures(d *difference) *Description {
	results := d.results
	for k := range results[0].axes {
		for _, b := range d.bases() {
			x := mixture{of: b.of, n: results[0].shape[k], at: k}
			if x.n < 2 || x.n > mostMixed || !x.solve(results, b.values) {
				continue
			}
			said := x.description(results, b.values)
			if said == nil {
				continue
			}
			var from []edit.Place
			if b.of != theResult {
				from = []edit.Place{b.at}
			}
			d.draft(said).proposes = x.mistakes(results[0].axes[k], theResult, edit.Place{Arg: result}, from...)
			return said
		}
	}
	return nil
}

// base is a value with the shape of the result, in each entry.
type base struct {
	of     Term
	at     edit.Place // the operand with the value
	source string     // the captured tensor with the value; empty for an operand
	values [][]float64
}

// basesOf are the right results, and the operands of the program's steps with the shape of the result.
func basesOf(s *search, results []observed) []base {
	right := base{of: theResult}
	for n := range results {
		right.values = append(right.values, results[n].value)
	}
	all := []base{right}
	t := s.first.signed(s.m)
	seen := []program.Var{t.Out}
	for i := range t.Steps {
		for a, v := range t.Steps[i].Args {
			if !slices.Equal(v.Shape, t.Out.Shape) || slices.ContainsFunc(seen, v.Same) || len(t.Copies(edit.Place{Step: t.PlaceOf(i).Step, Arg: a})) != 1 {
				continue
			}
			seen = append(seen, v)
			b := base{of: s.value(s.first, v), at: edit.Place{Step: t.PlaceOf(i).Step, Arg: a}}
			for n := range results {
				e := results[n].e
				p := e.signed(s.m)
				copies := p.Copies(edit.Place{Step: t.PlaceOf(i).Step, Arg: a})
				if e.Few != nil || len(copies) != 1 {
					break
				}
				x, ok := s.valueAt(e, p.Steps[copies[0]].Args[a])
				if !ok || len(x) != len(results[n].want) {
					break
				}
				b.values = append(b.values, x)
			}
			if len(b.values) == len(results) {
				all = append(all, b)
			}
		}
	}
	return all
}

// mixture is a matrix of coefficients along an axis.
type mixture struct {
	of    Term
	n, at int
	coefs []float64 // n by n
}

// vectors visits the vectors of elements along the axis, for each set of other indexes. A vector starts at the element of index 0, and stride is the
// distance to the next element.
func (x *mixture) vectors(o *observed, visit func(start, stride int) bool) {
	stride := program.Size(o.shape[x.at+1:])
	for start := range o.want {
		if start/stride%x.n == 0 && !visit(start, stride) {
			return
		}
	}
}

// solve solves the coefficients by least squares. It is not ok if the elements do not determine the coefficients.
func (x *mixture) solve(results []observed, values [][]float64) bool {
	n := x.n
	gram, right := make([]float64, n*n), make([]float64, n*n)
	total := 0
	for r := range results {
		o := &results[r]
		if len(o.shape) <= x.at || o.shape[x.at] != n {
			return false
		}
		v := values[r]
		x.vectors(o, func(start, stride int) bool {
			for i := range n {
				if k := start + i*stride; silent(o, k) || o.want[k]-o.want[k] != 0 || v[k]-v[k] != 0 {
					return true
				}
			}
			total++
			for i := range n {
				a := v[start+i*stride]
				for j := range n {
					gram[i*n+j] += a * v[start+j*stride]
					right[i*n+j] += a * o.want[start+j*stride]
				}
			}
			return true
		})
	}
	if total < leastOfMixed*n || !eliminated(gram, right, n) {
		return false
	}
	x.coefs = make([]float64, n*n)
	for i := range n {
		for j := range n {
			x.coefs[j*n+i] = right[i*n+j]
		}
	}
	return true
}

// eliminated solves a symmetric system with n right sides in place, by elimination with pivots on the diagonal. It is not ok for a nearly singular system.
func eliminated(a, b []float64, n int) bool {
	largest := 0.0
	for i := range n {
		largest = max(largest, a[i*n+i])
	}
	for k := range n {
		p := a[k*n+k]
		if !(p > mostSingular*largest) {
			return false
		}
		for i := range n {
			if i == k {
				continue
			}
			by := a[i*n+k] / p
			for j := range n {
				a[i*n+j] -= by * a[k*n+j]
				b[i*n+j] -= by * b[k*n+j]
			}
		}
	}
	for i := range n {
		for j := range n {
			b[i*n+j] /= a[i*n+i]
		}
	}
	return true
}

// whole rounds the coefficients to whole numbers. It is not ok if a coefficient is not near a whole number, or if an index has too many.
func (x *mixture) whole() bool {
	n := x.n
	for j := range n {
		terms := 0
		for i := range n {
			c := &x.coefs[j*n+i]
			w := math.Round(*c)
			if math.Abs(*c-w) > nearWhole || math.Abs(w) > mostWholes {
				return false
			}
			if *c = w + 0; w != 0 { // -0 is 0
				terms++
			}
		}
		if terms > mostTerms {
			return false
		}
	}
	return true
}

// description lists the coefficients if they are whole numbers and give the elements. It is nil for the coefficients of the right result.
func (x *mixture) description(results []observed, values [][]float64) *Description {
	n := x.n
	if !x.whole() {
		return nil
	}
	d := &Description{Kind: "described.mixed", Of: theResult, By: oneOf(results[0].axes[x.at]), Like: x.of}
	wrong, given := 0, 0
	for r := range results {
		o := &results[r]
		x.vectors(o, func(start, stride int) bool {
			for j := range n {
				sum, size, k := 0.0, 1.0, start+j*stride
				for i := range n {
					sum += x.coefs[j*n+i] * values[r][start+i*stride]
					size = max(size, math.Abs(x.coefs[j*n+i]))
				}
				if silent(o, k) {
					continue
				}
				has := math.Abs(o.want[k]-sum) <= size*off(o, k)
				if d.Elements++; has {
					d.Explained++
				}
				if wrongElement(o, k) {
					if wrong++; has {
						given++
					}
				}
			}
			return true
		})
	}
	if wrong < shownElements || float64(given) < leastShare*float64(wrong) || float64(d.Explained) < leastShare*float64(d.Elements) {
		return nil
	}
	for j := range n {
		if row := x.coefs[j*n : (j+1)*n]; !isUnit(row, j) || x.of != theResult {
			d.Wrong++
			d.Cases = oneMore(d.Cases, sumWords(d.By, j, row))
		}
	}
	if d.Wrong == 0 {
		return nil
	}
	return d
}

// isUnit reports whether a row of coefficients is 1 at index j and 0 elsewhere.
func isUnit(row []float64, j int) bool {
	for i, c := range row {
		if want := 0.0; i == j && c != 1 || i != j && c != want {
			return false
		}
	}
	return true
}
