package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// mostFarExponential is how far an approximation of an exponential may be off, where the exponential of 0 is 1.
const mostFarExponential = 1. / 4

// The arguments of a curve in place of an exponential.
const (
	ofDifference = iota + 1 // the difference from the maximum of the row
	ofFraction              // the fraction of the power of 2; the curve is times the whole power
	ofRatio                 // the difference; the curve is times the right exponential
)

// exponentialOf is the exponential of a softmax that ends a program; not ok for another program.
func exponentialOf(p *program.Program) (step int, ok bool) {
	all := edit.Softmaxes(p)
	if len(all) != 1 {
		return 0, false
	}
	end := beforeRounding(p, p.Out.Step)
	step = p.Steps[all[0]].Args[0].Step
	return step, end == all[0] && p.Steps[step].Prim == program.Exp
}

// argumentOf is the argument of a curve at a difference from the maximum, and the power that the curve is multiplied by.
func argumentOf(difference float64, way int) (argument, power float64) {
	switch way {
	case ofDifference:
		return difference, 1
	case ofRatio:
		return difference, math.Exp(difference)
	}
	x := difference * math.Log2E
	whole := math.Floor(x)
	return x - whole, math.Exp2(whole)
}

// nearExponential is the mistake that a curve near the exponential takes its place in a softmax. The sum of a row is not known, so an element is divided by
// the element of the row's maximum.
func nearExponential(x *difference) (m Mistake, ok bool) {
	step, ok := exponentialOf(x.first.Program)
	if !ok {
		return m, false
	}
	all, floor, ok := exponentials(x)
	if !ok {
		return m, false
	}
	far, most, at := 0, 0.0, 0.0
	low, high := math.Inf(-1), math.Inf(1) // of the factor with which the exponential would be right
	for _, p := range all {
		off := math.Abs(p.y - math.Exp(p.x))
		if off > p.off && off > farFromRight*math.Exp(p.x) {
			far++
		}
		if off > most {
			most, at = off, p.x
		}
		if e := 4 * p.off; p.x < 0 && p.y > e {
			low, high = max(low, math.Log(p.y+e)/p.x), min(high, math.Log(p.y-e)/p.x)
		}
	}
	if far < leastPoints || !(most <= mostFarExponential) || low <= high {
		return m, false
	}
	var best *curve
	for _, way := range []int{ofDifference, ofFraction, ofRatio} {
		points := make([]sample, len(all))
		for k, p := range all {
			argument, power := argumentOf(p.x, way)
			points[k] = sample{argument, p.y / power, p.off / power}
		}
		if c := x.fewest(thinned(merged(points)), best); c != best {
			best, m.N = c, way
		}
	}
	if best == nil {
		return m, false
	}
	m.Kind, m.Place, m.By = "function.near-exponential", x.site(x.first, step), x.value(x.first, x.first.Program.Steps[step].Args[0])
	m.For, m.X, m.Numbers = literal(inDigits(at, 3)), some(inDigits(most, 2)), best.written()
	if floor > 0 {
		m.Kind, m.Of = "function.near-exponential-above-0", literal(floor)
	}
	return m, true
}

// exponentials are the elements of the rows of all results, each divided by the element of the row's maximum, by the difference from the maximum. floor is
// what all elements have whose exponential is 0, which are no points. It is not ok if a result has not one element for each difference, or no floor.
func exponentials(x *difference) (all []sample, floor float64, ok bool) {
	low, high := 0.0, math.Inf(1)
	for n := range x.results {
		o := &x.results[n]
		step, ok := exponentialOf(o.e.Program)
		if !ok || o.e.Few != nil {
			return nil, 0, false
		}
		in, ok := x.valueAt(o.e, o.e.Program.Steps[step].Args[0])
		width := o.shape[len(o.shape)-1]
		if !ok || len(in) != len(o.want) {
			return nil, 0, false
		}
		for from := 0; from < len(in); from += width {
			top := slices.Index(in[from:][:width], 0)
			if top < 0 {
				return nil, 0, false
			}
			size, half := o.want[from+top], o.half[from+top]
			if !(size > 2*(half+o.off[from+top])) {
				return nil, 0, false
			}
			for i, d := range in[from:][:width] {
				y := o.want[from+i] / size
				off := (o.half[from+i] + y*half) / (size - half)
				switch {
				case d <= noDifference:
					low, high = max(low, y-off), min(high, y+off)
				case d > leastDifference && i != top:
					all = append(all, sample{d, y, off + 0x1p-24*y*(2-d)}) // less than the program allows for
				}
			}
		}
	}
	if low > 0 && low <= high {
		floor = shortest(low, high)
		all = slices.DeleteFunc(all, func(p sample) bool { return p.x <= math.Log(floor) })
	}
	return all, floor, low <= high
}

const (
	leastDifference = -87  // the least difference from the maximum whose exponential is a normal number of float32
	noDifference    = -104 // the exponential of a difference below is 0
)

// byExponentialCurve puts a curve in place of the exponential of a softmax. The maximum of a row is 1, and beyond the points of the curve the exponential
// is right, or at least the floor.
func byExponentialCurve(s *subject, e *Entry, m Mistake) *program.Edited {
	step, ok := exponentialOf(e.Program)
	c := m.Numbers.curve()
	if !ok || c == nil {
		return nil
	}
	arg := e.Program.Steps[step].Args[0]
	in, ok := s.valueAt(e, arg)
	if !ok || len(in) != program.Size(arg.Shape) {
		return nil
	}
	first, last := &c.pieces[0], &c.pieces[len(c.pieces)-1]
	low, high := first.middle-first.half, last.middle+last.half
	slack := 0x1p-20 * (high - low)
	logs := program.Value{Shape: arg.Shape, Data: slices.Clone(in)}
	least := float64(leastDifference)
	if m.Of.X > 0 {
		least = max(least, math.Log(m.Of.X))
	}
	for i, d := range in {
		if d <= least && m.Of.X > 0 {
			logs.Data[i] = math.Log(m.Of.X)
			continue
		}
		argument, power := argumentOf(d, m.N)
		if y := c.at(argument) * power; d < 0 && d > leastDifference && argument >= low-slack && argument <= high+slack && y > 0 {
			logs.Data[i] = math.Log(y)
		}
	}
	ed := edit.NewEditor(e.Program)
	y := ed.Sub("", ed.Add("", ed.Other(logs), ed.Literal(1)), ed.Literal(1)) // the argument of a port has an error of the size of the argument
	ed.Pass(step, ed.Exp("", y))
	return ended(ed)
}
