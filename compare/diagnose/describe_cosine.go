package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// cosine is the only cosine or sine of a program: between it and the result are only views.
type cosine struct {
	step, sin int // sin is 1 for a sine, and 0 for a cosine
}

// cosineOf is the cosine or sine of a program; not ok for other programs.
func cosineOf(p *program.Program) (cosine, bool) {
	all := append(edit.StepsOf(p, program.Cos), edit.StepsOf(p, program.Sin)...)
	if len(all) != 1 {
		return cosine{}, false
	}
	for i := range p.Steps {
		if i > all[0] && p.Steps[i].Prim.Computes() {
			return cosine{}, false
		}
	}
	return cosine{all[0], len(edit.StepsOf(p, program.Sin))}, true
}

// name is the function.
func (a cosine) name() string { return []string{"cosine", "sine"}[a.sin] }

// reduced is the distance of an angle from the nearest multiple of a number of half turns, and the sign by which the function at the angle differs from
// the function at the distance.
func (a cosine) reduced(angle float64, halves int) (r, sign float64) {
	period := float64(halves) * math.Pi
	k := math.Floor(angle/period + 0.5)
	r, sign = angle-k*period, 1
	if halves == 1 {
		sign -= 2 * (k - 2*math.Floor(k/2))
	}
	if a.sin == 1 && r < 0 {
		sign = -sign
	}
	return math.Abs(r), sign
}

// nearCosine is the mistake that a curve near the cosine or the sine takes its place: a function of the angle within a half or a quarter of the period.
func nearCosine(x *difference) (m Mistake, ok bool) {
	a, ok := cosineOf(x.first.Program)
	if !ok {
		return m, false
	}
	var points [2][]sample // by half turns, from 1 on
	var best *curve
	far, most, at := 0, 0.0, 0.0
	for n := range x.results {
		o := &x.results[n]
		angles, ok := anglesOf(x, o)
		if !ok {
			return m, false
		}
		for i, angle := range angles {
			off, e := math.Abs(o.want[i]-o.value[i]), o.half[i]+o.off[i]
			if off > e && off > farFromRight {
				far++
			}
			if !(off <= most) {
				most, at = off, angle
			}
			for k := range points {
				r, sign := a.reduced(angle, k+1)
				points[k] = append(points[k], sample{r, sign * o.want[i], e + angleUnits*(math.Abs(angle)+math.Pi)})
			}
		}
	}
	if far < leastPoints || !(most <= mostFar) {
		return m, false
	}
	for k := range points {
		if c := x.fewest(thinned(merged(points[k])), best); c != best {
			best, m.N = c, k+1
		}
	}
	if best == nil {
		return m, false
	}
	m.Kind, m.Of, m.Place = "function.near-in-period", function(a.name()), x.site(x.first, a.step)
	m.By, m.For, m.X, m.Numbers = x.value(x.first, x.first.Program.Steps[a.step].Args[0]), literal(inDigits(at, 3)), some(inDigits(most, 2)), best.written()
	return m, true
}

// angleUnits is the error of a reduced angle, for each radian of the angle.
const angleUnits = 0x1p-22

// anglesOf are the angles of the elements of a result.
func anglesOf(x *difference, o *observed) ([]float64, bool) {
	a, ok := cosineOf(o.e.Program)
	if !ok {
		return nil, false
	}
	ed := edit.NewEditor(o.e.Program)
	ed.Pass(a.step, o.e.Program.Steps[a.step].Args[0])
	d := ended(ed)
	if d == nil {
		return nil, false
	}
	v, ok := x.valueOf(o.e, d)
	return v.Data, ok && len(v.Data) == len(o.want)
}

// byReducedAngle puts a curve of the reduced angle in place of a cosine or a sine.
func byReducedAngle(_ *subject, e *Entry, m Mistake) *program.Edited {
	a, ok := cosineOf(e.Program)
	c := m.Numbers.curve()
	if !ok || c == nil || m.N < 1 || m.N > 2 || m.Of != function(a.name()) {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	angle := e.Program.Steps[a.step].Args[0]
	period := ed.Literal(float64(m.N) * math.Pi)
	k := ed.Floor(ed.Add("", ed.Mul("", angle, ed.Literal(1/(float64(m.N)*math.Pi))), ed.Literal(0.5)))
	r := ed.Sub("", ed.Sub("", ed.Add("", angle, period), period), ed.Mul("", k, period)) // a port adds a part of the period, and rounds the sum
	y := c.steps(ed, ed.Max(r, ed.Neg(r)))
	if a.sin == 1 {
		y = ed.Choose(ed.Gate(r), y, ed.Neg(y))
	}
	if m.N == 1 {
		odd := ed.Sub("", k, ed.Mul("", ed.Floor(ed.Mul("", k, ed.Literal(0.5))), ed.Literal(2)))
		y = ed.Choose(odd, ed.Neg(y), y)
	}
	ed.Pass(a.step, y)
	return ended(ed)
}
