package quant

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
)

// The functions here choose the codes and steps that ggml's reference quantisers (quantize_row_*_ref) choose, in float32 and in
// their order. Products are rounded by a conversion, so that no compiler fuses them with a sum.

// largest returns the value of the largest magnitude, the first of several; 0 for none.
func largest(x []float32) (value, magnitude float32) {
	for _, v := range x {
		if a := abs(v); magnitude < a {
			value, magnitude = v, a
		}
	}
	return value, magnitude
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// stored is a float32 as it is read back from a float16.
func stored(v float32) float64 { return float64(floats.RoundF16(v)) }

// cut makes a code of a number that was moved by half a step or more: the part before the point, at most hi.
func cut(v float32, hi int) int16 { return int16(min(hi, int(int8(int32(v))))) }

// quantiser chooses the codes, the steps and the offsets of a block.
type quantiser func(code []int16, step, offset []float64, x []float32)

// signed quantises without an offset: the largest magnitude gets the lowest code.
func signed(lo int) quantiser {
	return func(code []int16, step, offset []float64, x []float32) {
		value, _ := largest(x)
		d := value / float32(lo)
		id := inverse(d)
		step[0], offset[0] = stored(d), none
		for i, v := range x {
			code[i] = cut(float32(v*id)+(float32(-lo)+0.5), -2*lo-1) + int16(lo)
		}
	}
}

// signedStep is the step of signed, and with −127 that of Q8_0.
func signedStep(lo int) func(least, most float32) float64 {
	return func(least, most float32) float64 { return stored(max(abs(least), abs(most)) / float32(-lo)) }
}

// rangedStep is the step of ranged.
func rangedStep(hi int) func(least, most float32) float64 {
	return func(least, most float32) float64 { return stored((most - least) / float32(hi)) }
}

// ranged quantises the range from the smallest to the largest value.
func ranged(hi int) quantiser {
	return func(code []int16, step, offset []float64, x []float32) {
		least, most := float32(math.MaxFloat32), float32(-math.MaxFloat32)
		for _, v := range x {
			if v < least {
				least = v
			}
			if v > most {
				most = v
			}
		}
		d := (most - least) / float32(hi)
		id := inverse(d)
		step[0], offset[0] = stored(d), stored(least)
		for i, v := range x {
			code[i] = cut(float32((v-least)*id)+0.5, hi)
		}
	}
}

// quantiseQ80 gives the largest magnitude the code 127.
func quantiseQ80(code []int16, step, offset []float64, x []float32) {
	_, magnitude := largest(x)
	d := magnitude / 127
	id := inverse(d)
	step[0], offset[0] = stored(d), none
	for i, v := range x {
		code[i] = int16(int8(int32(math.Round(float64(v * id)))))
	}
}

// nearest rounds to the nearest integer, ties to even, by the sum with 1.5·2^23 whose last bits are the integer.
func nearest(v float32) int {
	return int(math.Float32bits(v+12582912)&0x7fffff) - 0x400000
}

func clamp(v, lo, hi int) int { return max(lo, min(hi, v)) }

// tiny is the magnitude below which ggml takes a group for zero.
const tiny = 1e-15

// search is the rule by which a step and a minimum are chosen for a group of Q4_K and Q5_K: of steps from (hi+from)/range in tenths,
// the weighted least squares fit with the least error.
type search struct {
	hi    int
	from  float32
	steps int
}

// fit returns the step and the minimum, which is not positive, that suit 32 values best.
func (s search) fit(code []int16, x []float32) (step, least float32) {
	var weights [32]float32
	sum := float32(0)
	for _, v := range x {
		sum += float32(v * v)
	}
	mean := float32(math.Sqrt(float64(sum / 32)))
	for i, v := range x {
		weights[i] = mean + abs(v)
	}
	least, most := x[0], x[0]
	sumW, sumX := weights[0], float32(weights[0]*x[0])
	for i := 1; i < 32; i++ {
		if x[i] < least {
			least = x[i]
		}
		if x[i] > most {
			most = x[i]
		}
		sumW += weights[i]
		sumX += float32(weights[i] * x[i])
	}
	if least > 0 {
		least = 0
	}
	if most == least {
		clear(code)
		return 0, least
	}
	base, width := least, most-least
	scale := float32(s.hi) / width
	step = 1 / scale
	s.codes(code, x, scale, base)
	best := squares(code, x, &weights, step, least)
	var other [32]int16
	for i := 0; i <= s.steps; i++ {
		s.codes(other[:], x, (s.from+float32(0.1*float32(i))+float32(s.hi))/width, base)
		st, le, ok := solve(other[:], x, &weights, sumW, sumX)
		if !ok {
			continue
		}
		if e := squares(other[:], x, &weights, st, le); e < best {
			copy(code, other[:])
			best, step, least = e, st, le
			// ggml goes on from the minimum that it found.
			base, width = le, most-le
		}
	}
	return step, least
}

func (s search) codes(code []int16, x []float32, scale, least float32) {
	for i, v := range x {
		code[i] = int16(clamp(nearest(scale*(v-least)), 0, s.hi))
	}
}

// solve is the weighted least squares fit of x by step·code + least, with least ≤ 0.
func solve(code []int16, x []float32, weights *[32]float32, sumW, sumX float32) (step, least float32, ok bool) {
	var sumL, sumL2, sumXL float32
	for i, v := range x {
		wl := weights[i] * float32(code[i])
		sumL += wl
		sumL2 += float32(wl * float32(code[i]))
		sumXL += float32(wl * v)
	}
	det := float32(sumW*sumL2) - float32(sumL*sumL)
	if !(det > 0) {
		return 0, 0, false
	}
	step = (float32(sumW*sumXL) - float32(sumX*sumL)) / det
	least = (float32(sumL2*sumX) - float32(sumL*sumXL)) / det
	if least > 0 {
		return sumXL / sumL2, 0, true
	}
	return step, least, true
}

// squares is the weighted sum of squared errors.
func squares(code []int16, x []float32, weights *[32]float32, step, least float32) float32 {
	sum := float32(0)
	for i, v := range x {
		diff := float32(step*float32(code[i])) + least - v
		sum += float32(weights[i] * float32(diff*diff))
	}
	return sum
}

// super quantises 256 values in eight groups, whose steps and minima are 6-bit multiples of two float16.
func (s search) super(code []int16, step, offset []float64, x []float32) {
	var steps, minima [8]float32
	var mostStep, mostMinimum float32
	for j := range 8 {
		st, least := s.fit(code[32*j:32*j+32], x[32*j:32*j+32])
		steps[j], minima[j] = st, -least
		mostStep, mostMinimum = max(mostStep, st), max(mostMinimum, -least)
	}
	d, dmin := stored(mostStep/63), stored(mostMinimum/63)
	toStep, toMinimum := sixBits(mostStep), sixBits(mostMinimum)
	for j := range 8 {
		step[j] = d * float64(min(63, uint8(nearest(float32(toStep*steps[j])))))
		offset[j] = -(dmin * float64(min(63, uint8(nearest(float32(toMinimum*minima[j]))))))
		if step[j] == 0 {
			continue
		}
		group := x[32*j : 32*j+32]
		for i, v := range group {
			code[32*j+i] = int16(clamp(nearest((v-float32(offset[j]))/float32(step[j])), 0, s.hi))
		}
	}
}

func sixBits(most float32) float32 {
	if most > 0 {
		return 63 / most
	}
	return 0
}

// fit6 returns the step that suits 16 values best, by least squares weighted with x², over 19 trial steps around the one at which the
// largest magnitude gets the code −32.
func fit6(code []int16, x []float32) float32 {
	value, magnitude := largest(x)
	if magnitude < tiny {
		for i := range code {
			code[i] = -32
		}
		return 0
	}
	var other [16]int16
	var step, best float32
	for _, is := range [...]int{0, -9, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9} {
		scale := -(32 + float32(0.1*float32(is))) / value
		if is == 0 {
			scale = -32 / value
		}
		var sumLX, sumL2 float32
		for i, v := range x {
			l := clamp(nearest(scale*v), -32, 31)
			other[i] = int16(l)
			w := float32(v * v)
			sumLX += float32(float32(w*v) * float32(l))
			sumL2 += float32(float32(w*float32(l)) * float32(l))
		}
		switch {
		case is == 0:
			if sumL2 != 0 {
				step = sumLX / sumL2
			}
		case sumL2 > 0 && float32(sumLX*sumLX) > float32(best*sumL2):
			step = sumLX / sumL2
		default:
			continue
		}
		best = float32(step * sumLX)
		copy(code, other[:])
	}
	return step
}

func quantiseQ6K(code []int16, step, offset []float64, x []float32) {
	var steps [16]float32
	var most float32
	for j := range steps {
		steps[j] = fit6(code[16*j:16*j+16], x[16*j:16*j+16])
		if abs(steps[j]) > abs(most) {
			most = steps[j]
		}
		step[j], offset[j] = 0, none
	}
	if abs(most) < tiny {
		for i := range code {
			code[i] = -32
		}
		return
	}
	scale := -128 / most
	d := stored(1 / scale)
	for j := range steps {
		step[j] = d * float64(int8(min(127, nearest(scale*steps[j]))))
		if step[j] == 0 {
			continue
		}
		for i := range 16 {
			code[16*j+i] = int16(clamp(nearest(x[16*j+i]/float32(step[j])), -32, 31))
		}
	}
}
