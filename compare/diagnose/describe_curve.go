package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	mostLines       = 9       // of a function that is made of lines
	mostDegree      = 14      // of the polynomials of a curve
	mostOfCurve     = 64      // numbers of a curve
	pointsForNumber = 8       // elements for each number of a curve
	farFromRight    = 0x1p-17 // of an element: what is nearer to the right value may come from an arithmetic
	mostFar         = 1. / 8  // of the largest element: a function that is further off approximates nothing
)

// The ways in which a curve gives a value.
const (
	asItself   = iota // the curve is the value
	timesInput        // the value is the curve times the argument
	timesRight        // the value is the curve times the right value, which the curve changes little
)

// steered is a value that the operation computes from one other value, the argument, by a function with a bend.
type steered struct {
	of       Term
	at       edit.Place
	all      []observed
	argument program.Var
	from     edit.Place
}

// curved describes values that are another function of the value that they are a function of: some lines, or a curve with few numbers near the right
// function. A description is made only of what is proposed as a mistake, since most results that differ by element are some function of a value.
func curved(x *difference) *Description {
	if !x.proposing || countWrongRows(x.results) < leastRows {
		return nil
	}
	d := &Description{Kind: "described.function", Of: theResult}
	if m, ok := nearPowers(x); ok {
		x.draft(d).proposes = append(x.draft(d).proposes, m)
	}
	all := x.steered()
	for k := range all {
		if m, ok := x.lines(&all[k]); ok {
			d.Like, x.draft(d).proposes = m.By, append(x.draft(d).proposes, m)
		}
	}
	if len(all) > 0 {
		if m, ok := x.nearby(&all[0]); ok {
			d.Like, x.draft(d).proposes = m.By, append(x.draft(d).proposes, m)
		}
	}
	for _, near := range []func(x *difference) (Mistake, bool){nearCosine, nearExponential} {
		if m, ok := near(x); ok {
			d.Like, x.draft(d).proposes = m.By, append(x.draft(d).proposes, m)
		}
	}
	if len(x.draft(d).proposes) == 0 || x.err != nil {
		return nil
	}
	x.draft(d).quiet = true
	return d
}

// steered lists the values of the operation that are functions of one value. The result, or the value nearest to it, comes first, with its farthest
// argument.
func (x *difference) steered() (all []steered) {
	t := x.first.signed(x.m)
	add := func(of Term, at edit.Place, v program.Var, observed []observed) {
		arguments := argumentsOf(t, v)
		for _, a := range slices.Backward(arguments) {
			from, ok := operandWith(t, a)
			if n := len(observed[0].want); ok && n == program.Size(a.Shape) && len(all) < maxPlaces*2 {
				all = append(all, steered{of, at, observed, a, from})
			}
		}
	}
	add(functionTerm(x.search, t, t.Out, theResult), edit.Place{Arg: unrounded}, t.Out, x.results)
	for _, inner := range x.inners() {
		if v := t.At(inner.at); !inner.number && len(inner.all[0].want) == program.Size(v.Shape) {
			add(functionTerm(x.search, t, v, inner.of), inner.at, v, inner.all)
		}
	}
	return all
}

// functionTerm is the activation whose last step gives a value, or another term.
func functionTerm(s *search, t *edit.StepIndex, v program.Var, or Term) Term {
	for _, own := range activationsOf {
		for _, one := range pieces(s.first.Program, own.Kind()) {
			if one.last == v.Step {
				return function(own.Kind())
			}
		}
	}
	return or
}

// operandWith is an operand of a step with a value.
func operandWith(t *edit.StepIndex, v program.Var) (edit.Place, bool) {
	for i := range t.Steps {
		for a, w := range t.Steps[i].Args {
			if at := (edit.Place{Step: t.PlaceOf(i).Step, Arg: a}); w.Same(v) && len(t.Copies(at)) == 1 {
				return at, true
			}
		}
	}
	return edit.Place{}, false
}

// argumentsOf are the values that each determine another value element by element, the nearest first. A value with only sums, products and limits
// between has no argument.
func argumentsOf(t *edit.StepIndex, v program.Var) (all []program.Var) {
	open, bent := []program.Var{v}, false
	for {
		at := 0
		for k := range open {
			if open[k].Step > open[at].Step {
				at = k
			}
		}
		v := open[at]
		st := &t.Steps[v.Step]
		if !st.Prim.ByElement() || !v.Same(t.Result(v.Step)) {
			return all
		}
		bent = bent || slices.Contains([]program.Prim{program.Exp, program.Tanh, program.Erf, program.Log, program.Log1p, program.Expm1, program.Pow}, st.Prim)
		open = slices.Delete(open, at, at+1)
		for _, a := range st.Args {
			if t.Steps[a.Step].Prim != program.Number && !slices.ContainsFunc(open, a.Same) {
				open = append(open, a)
			}
		}
		if len(open) == 0 {
			return all
		}
		if len(open) == 1 && bent {
			all = append(all, open[0])
		}
	}
}

// samplesOf are the points of a curve by which a value is a function of its argument, sorted by the argument; nil if no curve gives the values. With
// the right values in place of the wanted ones, the samples are those of the right function.
func (x *difference) samplesOf(v *steered, way int, right bool) (points []sample) {
	for n := range v.all {
		o := &v.all[n]
		in, ok := placedValue(x.subject, o.e, v.from)
		if !ok || len(in) != len(o.want) || o.e.Few != nil {
			return nil
		}
		for i, a := range in {
			want, half, by := o.want[i], o.half[i], 1.0
			if f, _ := math.Frexp(want); math.Abs(f) == 0.5 && !right && o.wrong != nil { // numbers below a power of two are closer together
				want, half = want+math.Copysign(half/4, want), 0.75*half
			}
			e := half + o.off[i]
			switch way {
			case timesInput:
				by = a
			case timesRight:
				by = o.value[i]
			}
			if right {
				want = o.value[i]
			}
			switch {
			case silent(o, i):
			case want-want != 0 || a-a != 0:
				return nil
			case by == 0 && math.Abs(want) > e:
				return nil
			case by != 0:
				points = append(points, sample{a, want / by, e / math.Abs(by)})
			}
		}
	}
	size := 0.0
	for _, p := range points {
		size = max(size, math.Abs(p.y))
	}
	for k := range points { // a port adds numbers of this size, see [curve.steps]
		points[k].off = max(points[k].off, 0x1p-25*size)
	}
	return thinned(merged(points))
}

// lines is the mistake that a function is made of lines. The right function takes twice as many lines at least.
func (x *difference) lines(v *steered) (m Mistake, ok bool) {
	for _, way := range []int{asItself, timesInput} {
		points := x.samplesOf(v, way, false)
		x.m.work += len(points)
		c := fitCurve(points, 1, mostLines)
		if c == nil || len(c.pieces) < 2 || len(points) < pointsForNumber*c.numbers() || !c.told(points) {
			continue
		}
		if fitCurve(x.samplesOf(v, way, true), 1, 2*len(c.pieces)-1) != nil || bends(points, c.numbers()/2) {
			continue
		}
		m = Mistake{Kind: "function.of-lines", Of: v.of, By: x.value(x.first, v.argument), N: len(c.pieces), Edit: placed(v.at, v.from)}
		if way == timesInput {
			m.Kind = "function.lines-times-input"
		}
		m.Numbers = c.written()
		return m, true
	}
	return m, false
}

// bends reports whether polynomials with a few numbers go through points, which are then not made of lines.
func bends(points []sample, numbers int) bool {
	for degree := 2; degree < numbers; degree++ {
		if c := fitCurve(points, degree, numbers/(degree+1)); c != nil && c.numbers() <= numbers {
			return true
		}
	}
	return false
}

// nearby is the mistake that a curve near the right function takes its place.
func (x *difference) nearby(v *steered) (m Mistake, ok bool) {
	off, at, ok := x.farthest(v)
	if !ok {
		return m, false
	}
	var best *curve
	for _, way := range []int{asItself, timesInput, timesRight} {
		if c := x.fewest(x.samplesOf(v, way, false), best); c != best {
			best, m.N = c, way
		}
	}
	if best == nil {
		return m, false
	}
	m = Mistake{
		Kind: "function.near", Of: v.of, By: x.value(x.first, v.argument), For: literal(inDigits(at, 3)), X: some(inDigits(off, 2)), N: m.N,
		Numbers: best.written(), Edit: placed(v.at, v.from),
	}
	return m, true
}

// fewest is the curve with the fewest numbers that goes through points with many points for each number, or another curve if that has as few.
func (x *difference) fewest(points []sample, best *curve) *curve {
	x.m.work += len(points) * mostDegree
	for degree := 1; degree <= mostDegree && len(points) > 0; degree++ {
		c := fitCurve(points, degree, mostOfCurve/(degree+1))
		if c != nil && c.numbers() <= mostOfCurve && pointsForNumber*c.numbers() <= len(points) && (best == nil || c.numbers() < best.numbers()) {
			best = c
		}
	}
	return best
}

// farthest is the largest difference between the values and the right function, and its argument. It is not ok if too few elements are far from the right
// function, or if any is so far that the values approximate nothing.
func (x *difference) farthest(v *steered) (most, at float64, ok bool) {
	far, size := 0, 0.0
	for n := range v.all {
		o := &v.all[n]
		in, has := placedValue(x.subject, o.e, v.from)
		if !has || len(in) != len(o.want) {
			return 0, 0, false
		}
		for i, want := range o.want {
			if silent(o, i) {
				continue
			}
			off := math.Abs(want - o.value[i])
			if size = max(size, math.Abs(o.value[i])); off > most {
				most, at = off, in[i]
			}
			if off > o.half[i]+o.off[i] && off > farFromRight*math.Abs(o.value[i]) {
				far++
			}
		}
	}
	return most, at, far >= leastPoints && most <= mostFar*size
}
