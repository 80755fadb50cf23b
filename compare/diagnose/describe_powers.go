package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Many engines compute an exponential as a whole power of 2, times a polynomial of the fraction of the exponent. A tanh may be computed from it.

// The exponentials that a step may be computed from.
const (
	ofArgument = iota + 1 // the exponential of the argument; for a tanh, of twice the argument
	ofNegative            // the exponential of its negative
)

// exponentOf is the exponent of the exponential of a step at an argument.
func exponentOf(st *program.Step, argument float64, way int) float64 {
	if st.Prim == program.Tanh {
		argument *= 2
	}
	if way == ofNegative {
		return -argument
	}
	return argument
}

// exponentialIn is the exponential from which a step has the value y. It is NaN for a value that no exponential gives.
func exponentialIn(st *program.Step, y float64, way int) float64 {
	if st.Prim == program.Tanh {
		y = (1 + y) / (1 - y)
	}
	if way == ofNegative {
		y = 1 / y
	}
	if !(y > 0) {
		return math.NaN()
	}
	return y
}

// nearPowers is the mistake that a polynomial between powers of 2 takes the place of an exponential in an exponential or a tanh within the operation.
func nearPowers(x *difference) (m Mistake, ok bool) {
	if _, whole := exponentialOf(x.first.Program); whole {
		return m, false
	}
	t := x.first.signed(x.m)
	for _, inner := range x.inners() {
		v := t.At(inner.at)
		st := &t.Steps[v.Step]
		if inner.number || !v.Same(t.Result(v.Step)) || st.Prim != program.Exp && st.Prim != program.Tanh {
			continue
		}
		for _, way := range []int{ofArgument, ofNegative} {
			points, most := x.powers(&inner, way)
			if points == nil {
				continue
			}
			if c := x.fewest(thinned(merged(points)), nil); c != nil && len(c.pieces) <= mostOfPowers {
				m = Mistake{Kind: "function.near-powers-of-2", Of: functionTerm(x.search, t, t.Out, inner.of), X: some(inDigits(most, 2)), N: way}
				m.Numbers, m.Edit = c.written(), placed(inner.at)
				return m, true
			}
		}
	}
	return m, false
}

const (
	mostOfPowers = 4       // polynomials between two powers of 2
	mostUnknown  = 1. / 16 // of an exponential: an element that tells less is no point
)

// powers are the points of a curve by the fraction of the exponent, and the largest error of the exponential, as a part of it. It has no points if too few
// elements are far from the right exponential, or if one is too far.
func (x *difference) powers(v *inner, way int) (points []sample, most float64) {
	far := 0
	for n := range v.all {
		o := &v.all[n]
		t := o.e.signed(x.m)
		st := &t.Steps[t.At(v.at).Step]
		in, ok := x.valueAt(o.e, st.Args[0])
		if !ok || len(in) != len(o.want) || o.e.Few != nil {
			return nil, 0
		}
		for i, a := range in {
			exponent := exponentOf(st, a, way)
			whole, fraction := math.Modf(exponent * math.Log2E)
			if fraction < 0 {
				whole, fraction = whole-1, fraction+1
			}
			low, high := exponentialIn(st, o.want[i]-o.half[i], way), exponentialIn(st, o.want[i]+o.half[i], way)
			y, off := (low+high)/2, math.Abs(high-low)/2
			power := math.Exp2(whole)
			if off += 0x1p-24 * y * (2 + math.Abs(exponent)); !(off <= mostUnknown*power) || !(power > 0x1p-120 && power < 0x1p120) {
				continue
			}
			points = append(points, sample{fraction, y / power, off / power})
			apart := math.Abs(y/power/math.Exp2(fraction) - 1)
			if most = max(most, apart); apart > farFromRight && apart > off/power {
				far++
			}
		}
	}
	if far < leastPoints || !(most <= mostFarExponential) {
		return nil, 0
	}
	return points, most
}

// byPowers puts a curve between powers of 2 in place of the exponential of a step.
func byPowers(s *subject, e *Entry, m Mistake) *program.Edited {
	c, at := m.Numbers.curve(), s.place(m)
	t := e.signed(s.m)
	if c == nil || at.Arg < 0 || len(t.Copies(at)) != 1 {
		return nil
	}
	st := &t.Steps[t.At(at).Step]
	if st.Prim != program.Exp && st.Prim != program.Tanh {
		return nil
	}
	in, ok := s.valueAt(e, st.Args[0])
	if !ok || len(in) != program.Size(st.Shape) {
		return nil
	}
	logs := program.Value{Shape: st.Shape, Data: make([]float64, len(in))}
	for i, a := range in {
		exponent := exponentOf(st, a, m.N)
		x := exponent * math.Log2E
		whole := math.Floor(x)
		if y := math.Log(c.at(x-whole)) + whole*math.Ln2; y-y == 0 {
			exponent = y
		}
		logs.Data[i] = exponent
	}
	return s.at(e, at, func(ed *edit.Editor, _ program.Var) program.Var {
		y := ed.Exp("", ed.Sub("", ed.Add("", ed.Other(logs), ed.Literal(1)), ed.Literal(1))) // the argument of a port has an error of the size of the argument
		one := ed.Literal(1)
		if m.N == ofNegative {
			y = ed.Div("", one, y)
		}
		if st.Prim == program.Tanh {
			y = ed.Sub("", one, ed.Div("", ed.Literal(2), ed.Add("", y, one)))
		}
		return y
	})
}
