package program

import (
	"math"
	"slices"
)

// Solve is X [m,n,c] with L·X = B for each of m systems: L [m,n,n] is lower triangular, and what stands above its diagonal is not read. With unit the diagonal is
// 1, whatever stands there. B is [m,n,c].
func (b *Builder) Solve(name string, l, rest Var, unit bool) Var {
	if len(l.Shape) != 3 || len(rest.Shape) != 3 || l.Shape[1] != l.Shape[2] || !slices.Equal(l.Shape[:2], rest.Shape[:2]) {
		return b.Fail("%s: %v and %v are no systems of equations", name, l.Shape, rest.Shape)
	}
	return b.Append(Step{Prim: Solve, Name: name, Args: []Var{l, rest}, Shape: rest.Shape, Payload: marked(unit, UnitDiagonal)})
}

// solve computes a Solve row by row: xᵢ = (bᵢ − Σ lᵢₖ·xₖ) / lᵢᵢ over the rows k before i. Each sum is rounded to float32, and each row as the step is before later
// rows read it. The bound of a row follows from the bounds of the rows before. bᵢ is a term of the sum like any other: a solver that goes by columns takes the
// products off it one by one, and rounds each difference.
func (r *run) solve(i int, out operand) {
	s := &r.p.Steps[i]
	n, width := s.Shape[1], s.Shape[2]
	l, b := r.packed(s.Args[0]), r.packed(s.Args[1])
	between, last := r.at(i, Plain), r.at(i, r.choice(i).Round)
	between.last = false // of rows before the last rounding
	ofRest, unit := last, s.Is(UnitDiagonal)
	if !unit {
		ofRest = between
	}
	finite := true               // what is solved of this system
	columns := r.room(width * n) // of the solution: what a sum reads follows each other
	for row := range s.Shape[0] * n {
		x, above := out.slice(row*width, width), row%n
		at := row*n + above
		of := l.slice(row*n, above)
		padding := finite && zero(of.v) && zero(of.e)
		for k := range width {
			v, e := b.v[row*width+k], b.bound(row*width+k)
			if above == 0 || padding {
				v, e = ofRest.one(v, e)
			} else {
				v, e = r.rest(ofRest, between, of, columns.slice(k*n, above), v, e)
			}
			if !unit {
				v, e = quotient(v, e, l.v[at], l.bound(at))
				v, e = last.one(v, e+reciprocal*math.Abs(v))
			}
			if x.v[k], columns.v[k*n+above] = v, v; x.e != nil {
				x.e[k], columns.e[k*n+above] = e, e
			}
		}
		finite = (above == 0 || finite) && x.finite()
	}
}

// reciprocal is what the reciprocal of a diagonal may be off by: solvers take it once, and multiply by it.
const reciprocal = unit32

// rest is b − Σ x·y.
func (r *run) rest(f, between finisher, x, y operand, b, be float64) (v, e float64) {
	if r.a.Sum != nil {
		v, e = between.one(r.a.replay(len(x.v), func(i int) (float64, float64, float64, float64) {
			return x.v[i], x.bound(i), y.v[i], y.bound(i)
		}))
		return f.one(b-v, be+e)
	}
	p := r.a.products(x, y, 0, len(x.v))
	p.sum = b - p.sum
	p.squares += float64(b * b)
	p.abs += math.Abs(b)
	p.e += be
	return f.total(p, len(x.v)+1)
}
