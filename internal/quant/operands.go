package quant

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Operand is how an engine stores the numbers that it multiplies with a weight of codes: as codes, too.
type Operand struct {
	Name     string // ggml's: "Q8_0"
	Elements int    // of a block; 0: the whole row is one
	block    func(x, bound []float64)
}

// Operands are what kernels may make of the other operand of a product with a weight of a format; those of one name differ in few codes. None
// where that is not known, or is more than steps and codes, as with Q4_1 and Q5_1, whose sums are rounded beside the codes.
//
// Of ggml's formats they are those of its kernels for the processor: that of its vector kernels, then that of its plain one where it differs.
// Source: the vec_dot_type of ggml-cpu.c; quantize_row_q8_0 of arch/x86/quants.c, quantize_row_q8_0_ref and quantize_row_q8_K_ref of
// ggml-quants.c. Of int8 by row they are what engines make of each token as it comes: 255 steps from −most to most, as torchao has them (x times
// the reciprocal of the step, choose_qparams_affine and _quantize_affine of quant_primitives.py) and compressed-tensors (x over the step,
// calculate_qparams of helpers.py), or 254, the step being most over 127.
func Operands(format string) []Operand {
	switch format {
	case "Q8_0", "Q4_0", "Q5_0":
		return []Operand{
			{"Q8_0", 32, func(x, bound []float64) { operandQ80(x, bound, vectorQ80) }},
			{"Q8_0", 32, func(x, bound []float64) { operandQ80(x, bound, plainQ80) }},
		}
	case "Q4_K", "Q5_K", "Q6_K":
		return []Operand{{"Q8_K", 256, operandQ8K}}
	case "int8, by row":
		return []Operand{byToken(127.5, false), byToken(127.5, true), byToken(127, true), byToken(127, false)}
	case "F16", "BF16":
		d, _ := hooks.ParseDType(format)
		return []Operand{{format, 1, func(x, bound []float64) { narrowed(d, x, bound) }}}
	}
	return nil
}

// byToken is a step for a whole row, by its largest magnitude over top.
func byToken(top float32, divide bool) Operand {
	return Operand{"int8 by token, " + stepsIn(top), 0, func(x, bound []float64) {
		most := float32(magnitude(x))
		step := most / top
		coded(x, bound, most, top, float64(step), func(x, _ float32) float64 {
			q := x / step
			if !divide {
				q = x * (1 / step)
			}
			return min(math.RoundToEven(float64(q)), 127)
		})
	}}
}

func stepsIn(top float32) string {
	if top == 127 {
		return "254 steps"
	}
	return "255 steps"
}

// Round rounds rows of numbers, each so long and of whole blocks, as the engine does. bound, where it is not nil, says how far from x each may be, and is made
// to say it of the result. What lies so near the middle between two codes that engines differ in the code has a bound of one step.
func (o Operand) Round(row int, x, bound []float64) {
	n := o.Elements
	if n == 0 {
		n = max(row, 1)
	}
	for at := 0; at+n <= len(x); at += n {
		var e []float64
		if bound != nil {
			e = bound[at:][:n]
		}
		o.block(x[at:][:n], e)
	}
}

// vectorQ80 is the code of x as vector kernels have it: by 127/most, ties to even.
func vectorQ80(x, most float32) float64 {
	return math.RoundToEven(float64(x * (127 / most)))
}

// plainQ80 is the code of x as the plain kernel has it: by 1/(most/127), ties away from zero.
func plainQ80(x, most float32) float64 {
	d := most / 127
	return math.Round(float64(x * (1 / d)))
}

// operandQ80 is quantize_row_q8_0: the step is the largest magnitude over 127, and is stored as float16.
func operandQ80(x, bound []float64, code func(x, most float32) float64) {
	most := float32(magnitude(x))
	coded(x, bound, most, 127, float64(floats.FromF16(floats.F16(most/127))), code)
}

// operandQ8K is quantize_row_q8_K: the step is the largest magnitude over 127, in float32.
func operandQ8K(x, bound []float64) {
	most := float32(magnitude(x))
	coded(x, bound, most, 127, float64(1/(127/most)), vectorQ80)
}

// narrowed rounds to a dtype, as ggml does before a product with weights of it.
func narrowed(d hooks.DType, x, bound []float64) {
	for i, v := range x {
		if x[i] = floats.Round(d, v); bound != nil && bound[i] > 0 {
			bound[i] += math.Abs(floats.Round(d, v+bound[i])-x[i]) + math.Abs(floats.Round(d, v-bound[i])-x[i])
		}
	}
}

func magnitude(x []float64) float64 {
	most := 0.0
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	return most
}

// coded rounds each x to the multiple of step that a kernel takes, of which there are top in most.
func coded(x, bound []float64, most, top float32, step float64, code func(x, most float32) float64) {
	per := float64(top)
	wide := 0.0 // how far the largest may be off, and with it every step
	for _, e := range bound {
		wide = max(wide, e)
	}
	for i, v := range x {
		if most == 0 {
			if x[i] = 0; bound != nil {
				bound[i] *= 2
			}
			continue
		}
		q := code(float32(v), most)
		if x[i] = q * step; bound == nil || wide == 0 {
			continue
		}
		const slack = 0x1p-14 // of the quotient, in float32
		near := slack + float64((bound[i]+wide)*per/float64(most))
		codes := 0.0 // that it may be off by
		if math.Abs(math.Abs(v*per/float64(most)-q)-0.5) <= near {
			codes = math.Ceil(near)
		}
		// The step, and its rounding to float16, whose smallest numbers are far apart.
		bound[i] = codes*step + (math.Abs(q)+codes)*(wide/per+max(0x1p-10*step, 0x1p-24))
	}
}
