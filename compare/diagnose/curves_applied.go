package diagnose

import (
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// written are the numbers of a curve: how many pieces, the breaks, and for each piece its middle, its half, how many powers it has, and their factors.
func (c *curve) written() Numbers {
	all := append([]float64{float64(len(c.pieces))}, c.breaks...)
	for _, p := range c.pieces {
		all = append(append(all, p.middle, p.half, float64(len(p.coefs))), p.coefs...)
	}
	return makeNumbers(all)
}

// curve reads the numbers of a curve; nil for numbers of no curve.
func (n Numbers) curve() *curve {
	all := n.list()
	if len(all) == 0 || !(all[0] >= 1 && all[0] <= float64(len(all))) {
		return nil
	}
	pieces := int(all[0])
	c := &curve{breaks: all[1:pieces]}
	for rest := all[pieces:]; len(rest) >= 3; {
		powers := int(rest[2])
		if powers < 1 || powers > len(rest)-3 {
			return nil
		}
		c.pieces = append(c.pieces, polynomial{rest[0], rest[1], rest[3:][:powers]})
		rest = rest[3+powers:]
	}
	if len(c.pieces) != pieces {
		return nil
	}
	return c
}

// numbersOfCurve counts the numbers of the curve of a mistake.
func numbersOfCurve(m Mistake) int {
	if c := m.Numbers.curve(); c != nil {
		return c.numbers()
	}
	return 0
}

// byCurve puts a curve of an operand in place of a value: the curve itself, times the operand, or times the right value.
func byCurve(s *subject, e *Entry, m Mistake) *program.Edited {
	at, x, ok := twoPlaces(s, e, m)
	c := m.Numbers.curve()
	if !ok || c == nil {
		return nil
	}
	return s.at(e, at, func(ed *edit.Editor, own program.Var) program.Var {
		if !slices.Equal(x.Shape, own.Shape) {
			return ed.Fail("shapes")
		}
		y := c.steps(ed, x)
		switch {
		case m.Kind == "function.lines-times-input" || m.Kind == "function.near" && m.N == timesInput:
			return ed.Mul("", x, y)
		case m.Kind == "function.near" && m.N == timesRight:
			return ed.Mul("", own, y)
		}
		return y
	})
}

// at is the value of a curve.
func (c *curve) at(x float64) float64 {
	k := 0
	for k < len(c.breaks) && x > c.breaks[k] {
		k++
	}
	return c.pieces[k].at(x)
}

// steps are the steps that compute a curve.
func (c *curve) steps(ed *edit.Editor, x program.Var) program.Var {
	var y program.Var
	for k := range c.pieces {
		p := &c.pieces[k]
		own := ed.Expand(ed.Literal(p.coefs[len(p.coefs)-1]), x.Shape)
		t := ed.Mul("", ed.Sub("", x, ed.Literal(p.middle)), ed.Literal(1/p.half))
		for _, a := range slices.Backward(p.coefs[:len(p.coefs)-1]) {
			own = ed.Add("", ed.Mul("", own, t), ed.Literal(a))
		}
		if k == 0 {
			y = own
			continue
		}
		y = ed.Choose(ed.Gate(ed.Sub("", x, ed.Literal(c.breaks[k-1]))), own, y)
	}
	size := c.size()
	return ed.Sub("", ed.Add("", y, ed.Literal(size)), ed.Literal(size)) // a port adds numbers of this size, and rounds the sum
}

// size is the largest value of a curve at the ends of its pieces.
func (c *curve) size() (most float64) {
	for k := range c.pieces {
		p := &c.pieces[k]
		most = max(most, math.Abs(p.at(p.middle-p.half)), math.Abs(p.at(p.middle+p.half)))
	}
	return most
}

// inDigits is a number with some digits.
func inDigits(x float64, digits int) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil {
		return math.NaN()
	}
	return y
}
