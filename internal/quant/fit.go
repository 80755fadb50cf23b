package quant

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
)

// Fit adds up how the codes of a tensor stand to the values that they were made from. The zero value is ready.
//
// A code is wrong by the rule of [Off]: with r = (x − offset)/step, held between the lowest and the highest code, where |r − code| >
// 1.5 + slack: it is further than one step from the nearest. Values beyond the last code are right with the last code. The slack, in steps,
// is what a writer rounds beside the code: steps and offsets that it stores after it chose the codes, and values that it took in float16 or
// bfloat16. Where a step is zero, every code says the same, and a value is wrong that is further from it than one whose step a writer
// rounds to zero.
//
// Errors are summed in float64, those of a group first.
type Fit struct {
	Elements  int64
	Wrong     int64 // codes that are further than one step from the nearest
	First     Miss  // the first wrong one; only with Wrong
	Worst     Miss  // the one the most steps off; only with Wrong
	Other     int64 // codes that are not the nearest, and not wrong
	Saturated int64 // values more than half a step beyond the last code
	Nonfinite int64 // elements with a step, an offset or a value that is not finite, or whose square is not; they are in no other count but Elements
	Bad       int64 // the number of the first of these; only with Nonfinite

	Error2   float64 // Σ (x − step·code − offset)²
	Nearest2 float64 // the same with the nearest codes
	X2       float64 // Σ x²
}

// Miss is a wrong code.
type Miss struct {
	Element       int64
	X             float64 // the value
	Code, Nearest int
	Step, Offset  float64
	Steps         float64 // |r − code|
}

// Add adds the elements from number from on: x[i] is the value of c.Code[i]. It allocates nothing.
func (f *Fit) Add(x []float64, c *Codes, from int64) {
	f.Elements += int64(len(x))
	for g, step := range c.Step {
		at := g * c.Group
		to := min(at+c.Group, len(x))
		if at >= to {
			return
		}
		offset := c.Offset[g]
		if s := step + offset; s-s != 0 {
			f.bad(from+int64(at), int64(to-at))
			continue
		}
		f.group(x[at:to], c, at, from+int64(at))
	}
}

func (f *Fit) bad(at, n int64) {
	if f.Nonfinite == 0 {
		f.Bad = at
	}
	f.Nonfinite += n
}

// group adds elements that share a step and an offset, which are finite.
func (f *Fit) group(x []float64, c *Codes, first int, from int64) {
	code, step, offset := c.Code[first:first+len(x)], c.Step[first/c.Group], c.Offset[first/c.Group]
	// A code is the nearest, or the value lies beyond the last one, where the error is at most half a step: most are, and no more is asked.
	half := math.Abs(step) / 2
	before := *f
	var error0, error1, sum0, sum1 float64 // of the elements with even and with odd numbers: one addition need not wait for the other
	at := from
	for q, v := code, x; len(v) > 0; {
		e := v[0] - (float64(step*float64(q[0])) + offset)
		error0 += float64(e * e)
		sum0 += float64(v[0] * v[0])
		if math.Abs(e) > half {
			f.far(v[0], c, first+int(at-from), at)
		}
		if len(v) == 1 || len(q) == 1 {
			break
		}
		e = v[1] - (float64(step*float64(q[1])) + offset)
		error1 += float64(e * e)
		sum1 += float64(v[1] * v[1])
		if math.Abs(e) > half {
			f.far(v[1], c, first+int(at-from)+1, at+1)
		}
		v, q, at = v[2:], q[2:], at+2
	}
	sum, all := error0+error1, sum0+sum1
	if s := sum + all; s-s != 0 {
		*f = before
		f.single(x, c, first, from)
		return
	}
	f.Error2, f.Nearest2, f.X2 = f.Error2+sum, f.Nearest2+sum, f.X2+all
}

// single adds elements one by one, since some are not finite, or so large that their squares are not.
func (f *Fit) single(x []float64, c *Codes, first int, from int64) {
	for i, v := range x {
		if e := v - c.value(first+i); float64(e*e)-float64(e*e) != 0 || float64(v*v)-float64(v*v) != 0 {
			f.bad(from+int64(i), 1)
			continue
		}
		f.group(x[i:i+1], c, first+i, from+int64(i))
	}
}

// value is that of element i.
func (c *Codes) value(i int) float64 {
	return float64(c.Step[i/c.Group]*float64(c.Code[i])) + c.Offset[i/c.Group]
}

// far looks at element i of c, number at of the tensor, whose value v is more than half a step from its code's.
func (f *Fit) far(v float64, c *Codes, i int, at int64) {
	code, step, offset := int(c.Code[i]), c.Step[i/c.Group], c.Offset[i/c.Group]
	y := c.value(i)
	if v-v != 0 || y-y != 0 {
		return
	}
	lo, hi := float64(c.Lo), float64(c.Hi)
	nearest := code
	if step != 0 {
		r := (v - offset) / step
		if r < lo-0.5 || r > hi+0.5 {
			f.Saturated++
		}
		if nearest = int(math.RoundToEven(min(max(r, lo), hi))); nearest == code {
			return
		}
	}
	b, e := v-(float64(step*float64(nearest))+offset), v-y
	f.Nearest2 += float64(b*b) - float64(e*e)
	steps, wrong := Off(v, y, step, float64(step*lo)+offset, float64(step*hi)+offset, c.Slack(i))
	switch {
	case wrong:
		f.wrong(Miss{at, v, code, nearest, step, offset, steps})
	case step != 0:
		f.Other++
	}
}

func (f *Fit) wrong(m Miss) {
	if f.Wrong == 0 {
		f.First = m
	}
	if f.Wrong == 0 || m.Steps > f.Worst.Steps {
		f.Worst = m
	}
	f.Wrong++
}

// Off judges one element: x is the value that a code was made from, y the code's, and first and last are those of the group's lowest and
// highest codes. It returns how many steps y is from x, or from the last code where x lies beyond it, and whether y is wrong: more than one
// step and a half, and what slack, in the units of the values, and a writer that takes x in float16 or bfloat16 account for. Where step is
// zero, y is wrong beyond the slack, by infinitely many steps.
func Off(x, y, step, first, last, slack float64) (steps float64, wrong bool) {
	slack += taken(x)
	if step == 0 {
		if math.Abs(x-y) > slack {
			return math.Inf(1), true
		}
		return 0, false
	}
	within := min(max(x, min(first, last)), max(first, last))
	steps = math.Abs(within-y) / math.Abs(step)
	return steps, steps > 1.5 && steps > 1.5+slack/math.Abs(step)
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

// taken is what taking x in float16 or in bfloat16 changes at most. Numbers of bfloat16 that are too small for float16 lose something there,
// others nothing.
func taken(x float64) float64 {
	if v := float32(x); float64(floats.RoundBF16(v)) == x {
		return toF16.Least
	}
	return max(toF16.Least, math.Abs(x)*toBF16.Relative)
}
