package program

import "slices"

// Solve is X [m,n,c] with L·X = B for each of m systems: L [m,n,n] is lower triangular, and what stands above its diagonal is not read. With unit the diagonal is
// 1, whatever stands there. B is [m,n,c].
func (b *Builder) Solve(name string, l, rest Var, unit bool) Var {
	if len(l.shape) != 3 || len(rest.shape) != 3 || l.shape[1] != l.shape[2] || !slices.Equal(l.shape[:2], rest.shape[:2]) {
		return b.Fail("%s: %v and %v are no systems of equations", name, l.shape, rest.shape)
	}
	return b.add(Step{Prim: Solve, Name: name, Args: []Var{l, rest}, Shape: rest.shape, unit: unit})
}

// solve computes a Solve row by row: xᵢ = (bᵢ − Σ lᵢₖ·xₖ) / lᵢᵢ over the rows k before i. Each sum is rounded to float32, each difference is, and each row as the
// step is before later rows read it. The bound of a row follows from the bounds of the rows before; it is for sums in any order, as solvers take them that go by
// blocks.
func (r *run) solve(i int, out operand) {
	s := &r.p.Steps[i]
	n, width := s.Shape[1], s.Shape[2]
	l, b := r.packed(s.Args[0]), r.packed(s.Args[1])
	between, last := r.at(i, Plain), r.at(i, r.choice(i).Round)
	between.last = false // of rows before the last rounding
	ofRest := last
	if !s.unit {
		ofRest = between
	}
	finite := true                                   // what is solved of this system
	columns, known := r.room(width*n), r.room(width) // columns are those of the solution: what a sum reads follows each other
	for row := range s.Shape[0] * n {
		x, above := out.slice(row*width, width), row%n
		copy(x.v, b.v[row*width:])
		if x.e != nil {
			copy(x.e, b.e[row*width:])
		}
		at := row*n + above
		if above > 0 {
			if of := l.slice(row*n, above); finite && zero(of.v) && zero(of.e) { // as of padding
				clear(known.v)
				clear(known.e)
			} else {
				r.dotRow(between, 0, known, pairs{x: l, y: columns, ax: row * n, sy: n, n: above})
			}
			r.sum(ofRest, true, x, x, known)
		}
		for k := range width {
			e := x.bound(k)
			if !s.unit {
				x.v[k], e = last.one(quotient(x.v[k], e, l.v[at], l.bound(at)))
			}
			if columns.v[k*n+above] = x.v[k]; x.e != nil {
				x.e[k], columns.e[k*n+above] = e, e
			}
		}
		finite = (above == 0 || finite) && x.finite()
	}
}
