package program

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program/functions"
)

// Prim is a primitive.
type Prim uint8

// The primitives. Leaves come first, then what only moves, then what computes.
const (
	Input  Prim = iota // an input of the program
	Weight             // a vector of the checkpoint
	Matrix             // a matrix of the checkpoint, streamed by row: an operand of Affine and Lookup only
	Dense              // a matrix of the checkpoint, read whole: an operand of any step
	Number             // a constant of the formula, or of the configuration
	Vector             // constants, such as the inverse frequencies of a rotary embedding

	Cat     // joins along an axis
	Neg     // −x
	Max     // the larger of two, which rounds nothing
	Floor   // the largest whole number that is not above x
	Gate    // 1 where x is above 0, and 0 elsewhere
	RowMax  // the largest of the last axis; see rowMax for its bound
	Lookup  // rows of a matrix by index
	Mask    // which keys a query may see
	Round   // a rounding point of what was moved
	Copy    // a place where an engine may round an input
	Choose  // the second operand where the first is not 0, the third elsewhere
	Gather  // elements by index along an axis
	Rank    // the indexes of the largest elements of the last axis
	Scatter // elements of one operand, and those of another written over them by index

	Add
	Sub
	Mul
	Div
	Sqrt
	Rsqrt // x^(−1/2)
	Exp
	Tanh
	Erf // as fused loops have it, see [functions.FusedErf]
	Cos
	Sin
	Log
	Log1p   // log(1+x)
	Expm1   // eˣ − 1
	Pow     // xʸ
	Angle   // frequency · position, float32 in every arithmetic
	Sum     // over the last axis
	Dot     // Σ x·y over the last axis of both
	Affine  // x·Wᵀ + b, W streamed
	Collect // elements of one operand, and those of another added to them by index
	Solve   // the solution of triangular systems of equations
)

var primNames = [...]string{
	"input", "weight", "matrix", "dense", "number", "vector",
	"cat", "neg", "max", "floor", "gate", "rowmax", "lookup", "mask", "round", "copy", "choose", "gather", "rank", "scatter",
	"add", "sub", "mul", "div", "sqrt", "rsqrt", "exp", "tanh", "erf", "cos", "sin", "log", "log1p", "expm1", "pow", "angle", "sum", "dot", "affine", "collect", "solve",
}

// String is the primitive's name in listings.
func (p Prim) String() string { return primNames[p] }

// Computes reports whether a primitive's result is rounded: whether its step is a site.
func (p Prim) Computes() bool { return p >= Add && p != Angle }

// IsLeaf reports whether a primitive reads no other step.
func (p Prim) IsLeaf() bool { return p <= Vector }

// IsWeight reports whether it is a tensor of the checkpoint.
func (p Prim) IsWeight() bool { return p == Weight || p == Matrix || p == Dense }

// ByElement reports whether an element of the result comes from one element of each operand.
func (p Prim) ByElement() bool {
	return p == Neg || p == Max || p == Floor || p == Gate || p == Round || p == Copy || p >= Add && p <= Angle
}

// byRow reports whether it comes from one row of the operand.
func (p Prim) byRow() bool { return p == Sum || p == RowMax }

// operand is a block of numbers and their bounds; e is nil without bounds.
type operand struct{ v, e []float64 }

// spread is how far the product of x and y moves when they move by up to xe and ye. Products are converted so that no
// compiler fuses them with the additions: results are the same on every processor.
func spread(x, xe, y, ye float64) float64 {
	return float64(math.Abs(x)*ye) + float64(math.Abs(y)*xe) + float64(xe*ye)
}

// larger returns max(x, y) and the bound. If one interval, value and bound, lies below the other interval, the lower
// interval's bound does not count.
func larger(x, xe, y, ye float64) (v, e float64) {
	v = math.Max(x, y)
	return v, known(max(math.Max(x+xe, y+ye)-v, v-math.Max(x-xe, y-ye)))
}

// quotient is x/y with what its operands' bounds make: E_x/|y| and |x|·E_y/y², the divisor taken at its nearest to zero.
func quotient(x, xe, y, ye float64) (v, e float64) {
	v = x / y
	if xe > 0 || ye > 0 {
		e = (xe + math.Abs(v)*ye) / max(math.Abs(y)-ye, 0)
	}
	return v, e
}

// quotientAbove is quotient by what is not below a number above zero, whatever its bound; 0 where nothing is known.
func quotientAbove(least, x, xe, y, ye float64) (v, e float64) {
	if v, e = quotient(x, xe, y, ye); y >= least && least > 0 && y-ye < least {
		e = (xe + math.Abs(v)*ye) / least
	}
	return v, e
}

// root is √x with what it changes by over [x−e, x+e], most at the near end, which is not below zero.
func root(x, xe float64) (v, e float64) {
	v = math.Sqrt(x)
	if xe > 0 {
		e = max(v-math.Sqrt(max(x-xe, 0)), math.Sqrt(x+xe)-v)
	}
	return v, e
}

// function is a monotone function of a library: its bound is its change over [x−e, x+e], and the error of the library without
// the rounding of the result. Both are exact to the rounding of float64, of the ends x ± e and of the values there.
func function(f library, x, xe float64) (v, e float64) {
	if v = f.of(x); math.IsInf(v, 0) && f.of(x-xe) == v && f.of(x+xe) == v {
		return v, 0
	}
	if xe > 0 {
		switch f.farthest {
		case upper:
			e = math.Abs(f.of(x+xe) - v)
		case lower:
			e = math.Abs(f.of(x-xe) - v)
		case inner:
			e = math.Abs(f.of(x-math.Copysign(xe, x)) - v)
		default:
			e = math.Max(math.Abs(f.of(x+xe)-v), math.Abs(f.of(x-xe)-v))
		}
	}
	return v, e + (f.units-1)*unit32*math.Abs(v)
}

// power is xʸ with what it changes by over its operands' bounds: monotone in |x| and in y, it changes most in a corner. Of a
// base that may be on either side of zero nothing is known.
func power(x, xe, y, ye float64) (v, e float64) {
	v = math.Pow(x, y)
	switch {
	case xe > 0 && math.Abs(x) <= xe:
		return v, math.Inf(1)
	case xe > 0 || ye > 0:
		for _, dx := range []float64{-xe, xe} {
			for _, dy := range []float64{-ye, ye} {
				e = math.Max(e, math.Abs(math.Pow(x+dx, y+dy)-v)) // NaN stays
			}
		}
	}
	return v, e + (functions.Power-1)*unit32*math.Abs(v)
}

// apply computes a block of a step whose result comes from elements: values and bounds, finished.
func (r *run) apply(i int, out, x, y operand) {
	s := &r.p.Steps[i]
	c := r.choice(i)
	f := r.at(i, c.Round)
	switch s.Prim {
	case Neg:
		for i, v := range x.v {
			out.v[i] = v * -1
		}
		copy(out.e, x.e)
	case Max:
		largerOf(out, x, y)
	case Floor:
		floorOf(out, x)
	case Gate:
		gateOf(out, x)
	case Round, Copy:
		copy(out.v, x.v)
		copy(out.e, x.e)
		f.points(out)
	case Add, Sub:
		r.sum(f, s.Prim == Sub, out, x, y)
	case Mul:
		r.times(i, c, out, x, y)
	case Div:
		r.divide(i, c, out, x, y)
	case Rsqrt:
		r.rsqrt(i, c, out, x)
	case Pow:
		for i, v := range x.v {
			if out.e == nil {
				out.v[i] = math.Pow(v, y.v[i])
			} else {
				out.v[i], out.e[i] = power(v, x.e[i], y.v[i], y.e[i])
			}
		}
		f.all(out, nil)
	case Erf, Exp, Log, Log1p, Expm1, Tanh:
		if s.Is(Fused) {
			r.fusedExp(c, f, s.Shape[len(s.Shape)-1], out, x)
			return
		}
		r.each(f, monotone[s.Prim], out, x)
	default:
		rootOrTurn(s.Prim, out, x)
		f.all(out, nil)
	}
}

// largerOf takes the larger of two blocks.
func largerOf(out, x, y operand) {
	for i := range out.v {
		if out.e == nil {
			out.v[i] = math.Max(x.v[i], y.v[i])
		} else {
			out.v[i], out.e[i] = larger(x.v[i], x.e[i], y.v[i], y.e[i])
		}
	}
}

// floorOf takes the largest whole numbers that are not above a block.
func floorOf(out, x operand) {
	for i, v := range x.v {
		if out.v[i] = math.Floor(v); out.e != nil {
			out.e[i] = known(max(math.Floor(v+x.e[i])-out.v[i], out.v[i]-math.Floor(v-x.e[i])))
		}
	}
}

// gateOf is 1 where a block is above 0.
func gateOf(out, x operand) {
	for i, v := range x.v {
		out.v[i] = 0
		if v > 0 {
			out.v[i] = 1
		}
		if out.e != nil && x.e[i] > 0 && math.Abs(v) <= x.e[i] {
			out.e[i] = 1
		}
	}
}

// times multiplies, or divides by the reciprocal of a constant.
func (r *run) times(i int, c Choice, out, x, y operand) {
	if c.Way != WayProduct {
		r.byQuotient(i, c, out, x, y)
		return
	}
	s := &r.p.Steps[i]
	for i, v := range x.v {
		out.v[i] = v * y.v[i]
	}
	byNumber := r.a.Hull && s.Is(ByNumber)
	for i := range out.e {
		out.e[i] = spread(x.v[i], x.e[i], y.v[i], y.e[i])
		if byNumber {
			out.e[i] += r.byReciprocal(0, s.Args[0], s.Args[1]) * (math.Abs(out.v[i]) + out.e[i])
		}
	}
	r.at(i, c.Round).all(out, nil)
}

// rootOrTurn takes a root, a cosine or a sine.
func rootOrTurn(p Prim, out, x operand) {
	for i, v := range x.v {
		e := 0.0
		switch {
		case p == Sqrt && out.e != nil:
			out.v[i], e = root(v, x.e[i])
		case p == Sqrt:
			out.v[i] = math.Sqrt(v)
		case p == Cos:
			out.v[i] = math.Cos(v)
		default:
			out.v[i] = math.Sin(v)
		}
		if out.e == nil {
			continue
		}
		if p != Sqrt { // neither has a slope above 1
			e = x.e[i] + (functions.Cosine-1)*unit32*math.Abs(out.v[i])
		}
		out.e[i] = e
	}
}

// library is a monotone function of a library, what that may be off by, in units of the result and of 1 whatever the result is, and where its values are
// farthest from its value at x.
type library struct {
	of           func(float64) float64
	units, extra float64
	farthest     end
}

// end is an end of [x−e, x+e].
type end uint8

const (
	anyEnd end = iota // it is not known which
	upper             // x+e, as of a convex function that grows
	lower             // x−e, as of a concave one
	inner             // the one nearer to 0, as of an odd function that is concave above 0
)

var monotone = map[Prim]library{
	Exp: {of: floats.Exp, units: functions.Exp, farthest: upper}, Log: {of: math.Log, units: functions.Log, farthest: lower},
	Log1p: {of: math.Log1p, units: functions.Log, farthest: lower}, Expm1: {of: math.Expm1, units: functions.Log, farthest: upper},
	Tanh: {of: floats.Tanh, units: functions.Tanh, farthest: inner}, Erf: {of: math.Erf, units: functions.Erf, extra: functions.FusedErf, farthest: inner},
}

// each applies a monotone function.
func (r *run) each(f finisher, fn library, out, x operand) {
	if out.e == nil {
		for i, v := range x.v {
			out.v[i] = fn.of(v)
		}
		f.all(out, nil)
		return
	}
	for i, v := range x.v {
		v, e := function(fn, v, x.e[i])
		if fn.extra == 0 {
			out.v[i], out.e[i] = f.one(v, e)
			continue
		}
		n := v
		if f.round < None {
			n = float64(float32(v))
		}
		out.v[i], out.e[i] = f.narrowBound(n, f.bound(n, v, e)+fn.extra*unit32)
	}
}

// sum adds or subtracts. A term is absorbed if it is so small, compared with the other term, that in every arithmetic
// the sum equals the other term, for example a score added to a mask: there a bound of u·|x| would exceed every
// unmasked value. A product that was not rounded, because the product is fused with the sum, is rounded by the sum.
func (r *run) sum(f finisher, minus bool, out, x, y operand) {
	sign := 1.0
	if minus {
		sign = -1
	}
	if out.e == nil {
		for i, v := range x.v {
			out.v[i] = v + sign*y.v[i]
		}
		f.all(out, nil)
		return
	}
	var kept []bool
	tiny := f.absorbed()
	for i, v := range x.v {
		w, xe, ye := sign*y.v[i], x.e[i], y.e[i]
		out.v[i], out.e[i] = v+w, xe+ye
		if f.round >= None {
			continue
		}
		switch { // a number with a bound may be a number that float32 does not have: the sum rounds such a number
		case xe == 0 && math.Abs(w)+ye < tiny*math.Abs(v) && keeps(v):
			out.v[i], out.e[i] = v, 0
		case ye == 0 && math.Abs(v)+xe < tiny*math.Abs(w) && keeps(w):
			out.v[i], out.e[i] = w, 0
		default:
			continue
		}
		if kept == nil {
			kept = r.flags(len(out.v))
		}
		kept[i] = true
	}
	f.all(out, kept)
}

// keeps reports whether an engine keeps a number to which it adds nothing: float32 has the number, and it is not
// flushed to zero.
func keeps(v float64) bool { return f32(v) == v && math.Abs(v) >= normal32 }

// absorbed is the part of the other that a term is absorbed below: in the hull by double precision too, which some engines
// compute in.
func (f finisher) absorbed() float64 {
	if f.Hull {
		return unit64 / 4
	}
	return unit32 / 4
}
