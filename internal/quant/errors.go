package quant

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
)

// Errors say how the numbers that codes were made from stand to what the codes say.
type Errors struct {
	Error2, X2  float64 // Σ (value − x)² and Σ x², in float64
	Least, Most float64 // of the numbers
	// Nearest: every code is the nearest to its number, within half a step and the tolerance of [Codes.Slack] and [taken]; the last code is the
	// nearest to values beyond it. And all numbers are finite.
	Nearest bool
	Beyond2 float64 // at least Σ of the squares of what lies beyond the last codes
}

// errorSums are the sums of elements: even and odd elements separately, so that additions need not wait for each other.
type errorSums struct {
	error2, x2  [2]float64
	least, most float64
}

// nearly is one, and what rounding a value to float32 may add to half a step.
const nearly = 1 + 0x1p-12

// Errors compares the numbers x with the codes of group g, element by element. It allocates nothing.
func (c *Codes) Errors(g int, x []float64) Errors {
	at := g * c.Group
	codes := c.Code[at : at+len(x)][:len(x)]
	step, offset := c.Step[g], c.Offset[g]
	half := math.Abs(step) / 2 * nearly
	e := Errors{Nearest: true, Beyond2: float64(len(x)) * half * half} // half a step is not looked at
	var s errorSums
	if len(x) > 0 {
		s.least, s.most = x[0], x[0]
	}
	i := s.vectorErrors(codes, x, step, offset, half, func(i int) { e.far(c, at+i, x[i], float64(step*float64(codes[i]))+offset-x[i]) })
	for ; i < len(x); i++ {
		v := x[i]
		d := float64(step*float64(codes[i])) + offset - v
		s.error2[i&1] += float64(d * d)
		s.x2[i&1] += float64(v * v)
		if math.Abs(d) > half {
			e.far(c, at+i, v, d)
		}
		if v < s.least {
			s.least = v
		} else if v > s.most {
			s.most = v
		}
	}
	e.Least, e.Most = s.least, s.most
	e.Error2, e.X2 = s.error2[0]+s.error2[1], s.x2[0]+s.x2[1]
	if s := e.Error2 + e.X2; s-s != 0 {
		e.Nearest = false
	}
	return e
}

// far looks at element i, whose number x is more than half a step from its code's value, by d.
func (e *Errors) far(c *Codes, i int, x, d float64) {
	g, code := i/c.Group, int(c.Code[i])
	step := c.Step[g]
	last := code == c.Lo && (d > 0) == (step > 0) || code == c.Hi && (d < 0) == (step > 0)
	switch {
	case step != 0 && last:
		e.Beyond2 += d * d
	case math.Abs(d) > math.Abs(step)/2*nearly+c.Slack(i)+taken(x):
		e.Nearest = false
	}
}

// Add adds the errors of other codes.
func (e *Errors) Add(o *Errors) {
	e.Error2, e.X2, e.Beyond2 = e.Error2+o.Error2, e.X2+o.X2, e.Beyond2+o.Beyond2
	e.Least, e.Most = min(e.Least, o.Least), max(e.Most, o.Most)
	e.Nearest = e.Nearest && o.Nearest
}

// Slack is how far the element i may be from where it would be if its step and its offset were stored as they were when the codes were
// chosen. Where the step is zero, it is how far from the offset a value may be whose step a writer rounds to zero.
func (c *Codes) Slack(i int) float64 {
	g := i / c.Group
	step, code := c.Step[g], math.Abs(float64(c.Code[i]))
	if step == 0 {
		code = float64(max(-c.Lo, c.Hi))
		if c.Super > 0 {
			return c.blank(g/c.Super*c.Super, code)
		}
	}
	if c.Early == (Rounding{}) {
		return 0
	}
	by := c.Early.of(step) * code
	if offset := c.Offset[g]; offset != 0 {
		by += c.Early.of(offset)
	}
	return by
}

// blank is the slack of a group without a step in a super-block, whose first group is given. Its steps are multiples of a scale d, and the
// largest is some 63 times d or more: one that becomes zero is at most half of d, and so it is with offsets. Where all are zero, d itself
// was at most half of float16's smallest number.
func (c *Codes) blank(first int, code float64) float64 {
	step, offset := 128*toF16.Least, 128*toF16.Least
	for g := first; g < min(first+c.Super, len(c.Step)); g++ {
		step, offset = max(step, math.Abs(c.Step[g])/64), max(offset, math.Abs(c.Offset[g])/64)
	}
	return code*step + offset
}

// taken bounds the change by a writer that takes x in float16 or bfloat16 before it chooses a code: half a step of either. Numbers of bfloat16
// that are too small for float16 lose something there; other numbers lose only float32's rounding of a step next to an offset that is millions
// of times as large.
func taken(x float64) float64 {
	if v := float32(x); float64(floats.RoundBF16(v)) == x {
		return max(toF16.Least, math.Abs(x)*toF32.Relative)
	}
	return max(toF16.Least, math.Abs(x)*toBF16.Relative)
}
