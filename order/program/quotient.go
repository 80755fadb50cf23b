package program

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program/functions"
)

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
	known := s.Quotient()
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

// rsqrt is the reciprocal root, or the reciprocal of the root. Its operand is not below what the steps before it make of it,
// whatever its bound.
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
