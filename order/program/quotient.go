package program

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program/functions"
)

// Solve is X [m,n,c] with L·X = B for each of m systems: L [m,n,n] is lower triangular, and what stands above its diagonal is not read. With unit the diagonal is
// 1, whatever stands there. B is [m,n,c].
func (b *Builder) Solve(name string, l, rest Var, unit bool) Var {
	if len(l.Shape) != 3 || len(rest.Shape) != 3 || l.Shape[1] != l.Shape[2] || !slices.Equal(l.Shape[:2], rest.Shape[:2]) {
		return b.Fail("%s: %v and %v are not systems of equations", name, l.Shape, rest.Shape)
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

// byReciprocal is how far, as a share of it, a result may be off in the hull that is taken by way of a rounded reciprocal: of a
// number among some operands, which is known, or of any number that is not larger than most. The reciprocal of a large one is subnormal.
func (r *run) byReciprocal(most float64, of ...Var) float64 {
	for _, v := range of {
		if x, ok := numberAt(r.p, v); ok && x != 0 {
			return math.Abs(floats.Round(r.a.DType, 1/x)*x-1) * (1 + unitOf(r.a.DType))
		}
	}
	u := unitOf(r.a.DType) * max(1, floats.SmallestNormal(r.a.DType)*most)
	return u * (1 + 2*u)
}

// divide divides, or multiplies with the reciprocal.
func (r *run) divide(i int, c Choice, out, x, y operand) {
	s, f := &r.p.Steps[i], r.at(i, c.Round)
	known := s.quotient()
	if c.Way == WayQuotient {
		for i, v := range x.v {
			if out.e == nil {
				out.v[i] = v / y.v[i]
				continue
			}
			if out.v[i], out.e[i] = quotientAbove(known.Least, v, x.e[i], y.v[i], y.e[i]); r.a.Hull {
				out.e[i] += r.byReciprocal(math.Abs(y.v[i])+y.e[i], s.Args[1]) * (math.Abs(out.v[i]) + out.e[i])
			}
			out.e[i] += known.Units * unit32 * math.Abs(v)
		}
		f.all(out, nil)
		return
	}
	of := r.a.finisher(reciprocalRound[c.Way])
	exact, number := numberAt(r.p, s.Args[1])
	for i, v := range x.v {
		by, e := y.v[i], 0.0
		if out.e != nil {
			e = y.e[i]
		}
		if number {
			by = exact
		}
		by, e = quotientAbove(known.Least, 1, 0, by, e)
		by, e = of.one(by, e)
		out.v[i] = v * by
		if out.e != nil {
			out.e[i] = spread(v, x.e[i], by, e)
		}
	}
	f.all(out, nil)
}

// byQuotient multiplies with a constant by dividing by its reciprocal.
func (r *run) byQuotient(i int, c Choice, out, x, y operand) {
	s, f := &r.p.Steps[i], r.at(i, c.Round)
	by, ok := numberAt(r.p, s.Args[1])
	if first, is := numberAt(r.p, s.Args[0]); is {
		by, ok, x = first, true, y
	}
	if !ok {
		return
	}
	by, e := r.a.finisher(reciprocalRound[c.Way]).one(1/by, 0)
	for i, v := range x.v {
		if out.e == nil {
			out.v[i] = v / by
		} else {
			out.v[i], out.e[i] = quotient(v, x.e[i], by, e)
		}
	}
	f.all(out, nil)
}

// rsqrt is the reciprocal root, or the reciprocal of the root. The steps before set a lower limit for the operand,
// whatever the operand's bound.
func (r *run) rsqrt(i int, c Choice, out, x operand) {
	f, least := r.at(i, c.Round), r.lowest(r.p.Steps[i].Args[0].Step)
	if c.Way == WayRsqrt {
		fn := func(v float64) float64 { return 1 / math.Sqrt(math.Max(v, least)) }
		r.each(f, library{of: fn, units: functions.Rsqrt}, out, x)
		if r.a.Hull {
			for i, v := range out.v {
				out.e[i] += r.byReciprocal(math.Abs(v)) * (math.Abs(v) + out.e[i])
			}
		}
		return
	}
	of := r.a.finisher(reciprocalRound[c.Way])
	for i, v := range x.v {
		e := 0.0
		if out.e != nil {
			e = x.e[i]
		}
		v, e = root(math.Max(v, least), e)
		v, e = of.one(v, e)
		v, e = quotient(1, 0, v, e)
		if out.v[i] = v; out.e != nil {
			out.e[i] = e
		}
	}
	f.all(out, nil)
}
