package quant

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
)

// Fit adds up how the codes of a tensor stand to the values that they were made from. The zero value is ready.
//
// With r = (x − offset)/step, held between the lowest and the highest code, a code is wrong where |r − code| > 1.5 + slack: it is further
// than one step from the nearest. Values beyond the last code are right with the last code. The slack, in steps, is what a writer rounds
// beside the code: steps and offsets that it stores after it chose the codes, and values that it took in float16 or bfloat16.
//
// Errors are summed in float64, in the order of the elements.
type Fit struct {
	Elements  int64
	Wrong     int64 // codes that are further than one step from the nearest
	First     Miss  // the first wrong one; only with Wrong
	Worst     Miss  // the one the most steps off; only with Wrong
	Other     int64 // codes that are not the nearest, and not wrong
	Saturated int64 // values more than half a step beyond the last code
	Nonfinite int64 // elements with a step, an offset or a value that is not finite; they are in no other count but Elements
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
		f.group(x[at:to], c.Code[at:to], c, step, offset, from+int64(at))
	}
}

func (f *Fit) bad(at, n int64) {
	if f.Nonfinite == 0 {
		f.Bad = at
	}
	f.Nonfinite += n
}

// group adds elements that share a step and an offset.
func (f *Fit) group(x []float64, code []int16, c *Codes, step, offset float64, from int64) {
	inverse, lo, hi := 1/step, float64(c.Lo), float64(c.Hi)
	if step == 0 {
		inverse = 0
	}
	var error2, nearest2, x2 float64
	var other, saturated int64
	for i, v := range x {
		q := float64(code[i])
		e := v - (float64(step*q) + offset)
		if e-e != 0 {
			f.bad(from+int64(i), 1)
			continue
		}
		error2 += float64(e * e)
		x2 += float64(v * v)
		r := float64((v - offset) * inverse)
		if r < lo || r > hi {
			if r < lo-0.5 || r > hi+0.5 {
				saturated++
			}
			r = min(max(r, lo), hi)
		}
		if d := math.Abs(r - q); d <= 0.5 || step == 0 {
			nearest2 += float64(e * e)
		} else {
			other++
			n := math.RoundToEven(r)
			b := v - (float64(step*n) + offset)
			nearest2 += float64(b * b)
			if d > 1.5 && d > 1.5+slack(c.Early, v, q, step, offset) {
				other--
				f.wrong(Miss{from + int64(i), v, int(code[i]), int(n), step, offset, d})
			}
		}
	}
	f.Error2, f.Nearest2, f.X2 = f.Error2+error2, f.Nearest2+nearest2, f.X2+x2
	f.Other, f.Saturated = f.Other+other, f.Saturated+saturated
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

// slack is how many steps roundings beside the code's own may move it.
func slack(early Rounding, x, code, step, offset float64) float64 {
	taken := toF16.Least // of the value, by a writer that took it in float16
	if v := float32(x); float64(floats.RoundBF16(v)) != x {
		taken = max(taken, math.Abs(x)*toBF16.Relative) // or in bfloat16
	}
	if early != (Rounding{}) {
		taken += early.of(step) * math.Abs(code)
		if offset != 0 {
			taken += early.of(offset)
		}
	}
	return taken / math.Abs(step)
}
