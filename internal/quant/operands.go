package quant

import (
	"fmt"
	"math"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Kernel is an engine's product with a weight of codes, if the engine does not multiply the dequantised weight with unrounded numbers.
type Kernel struct {
	Name string // what it makes of numbers, ggml's name: "Q8_0"; kernels of one name differ in few codes
	does string // the same in words, with %s for the format of the weight

	Elements int                      // of a block of the operand; 0: the whole row is one
	block    func(x, bound []float64) // rounds one; nil: the operand stays as it is
	group    int                      // elements of a weight that share an offset, where the kernel adds offsets apart from codes; 0: it does not
	zero     float64                  // what the codes of the weight are larger by in the kernel, and the offsets smaller by, in steps
	stored   coder                    // the code whose sums the operand stores, rounded to float16; nil: it has sums of codes as they are
	dtype    hooks.DType              // in which weights are dequantised, the product of step and code rounded first; 0: not
	inTurn   bool                     // products are added one after the other, each product and each sum rounded to dtype
}

// Does says what the kernel does with weights of a format.
func (k Kernel) Does(format string) string { return fmt.Sprintf(k.does, format) }

// OfCodes reports whether the kernel needs the steps and offsets of a weight, in addition to its values.
func (k Kernel) OfCodes() bool { return k.group != 0 || k.dtype != 0 }

// Dequantises reports whether the kernel has a weight of its own: dequantised with other roundings.
func (k Kernel) Dequantises() bool { return k.dtype != 0 }

// Stepped is how many elements of a row of a weight share a step and an offset, where a kernel that is known for its format needs these; 0 where none
// does. group is how many share a step, or a step of steps, in the file.
func Stepped(format string, group int) int {
	if k, ok := Unrounded(format, group); ok {
		return k.group
	}
	for _, k := range Kernels(format, hooks.BF16) {
		if k.group != 0 {
			return k.group
		}
	}
	return 0
}

// Unrounded is the kernel that multiplies weights of a format with operands as they are, in float32; false for a format without offsets. Some engines
// dequantise there, and others add the offsets apart from the codes (ggml's and MLX's kernels for Metal, ggml's for Vulkan): nothing tells which, so that
// the bound is that of the second. group is how many elements share a step in the file.
// Source: block_q_n_dot_y and kernel_mul_mv_q4_K_f32_impl of ggml-metal/kernels/mul_mv.metal, mul_mat_vec_q4_k.comp of ggml-vulkan; load_vector and qdot of
// metal/kernels/quantized.h of MLX.
func Unrounded(format string, group int) (Kernel, bool) {
	var zero float64
	switch format {
	case "Q4_1", "Q5_1", "Q4_K", "Q5_K":
		group = 32
	case "Q4_0":
		group, zero = 32, 8
	case "Q5_0":
		group, zero = 32, 16
	default:
		if !strings.HasPrefix(format, "MLX affine") || group < 1 {
			return Kernel{}, false
		}
	}
	return Kernel{Name: "float32", does: "adds offsets of %s weights separately", Elements: group}.adds(group, zero), true
}

// Kernels returns the known ways to multiply by a weight of a format in a model of a dtype, or nil. Kernels with the same name differ in few codes.
//
// For ggml's formats the list has the vector kernel, then the plain kernel if it differs. The
// codes of Q4_1, Q5_1, Q4_K and Q5_K are multiplied apart from the offsets, which are multiplied with the sum of each block or group of the operand: rounded to
// float16 in Q8_1, an integer in Q8_K. The codes of Q6_K are multiplied likewise: the kernel for AVX2 keeps them from 0 to 63, and subtracts 32 times the sums.
// Source: the vec_dot_type of ggml-cpu.c; quantize_row_q8_0, quantize_row_q8_1, ggml_vec_dot_q4_K_q8_K and ggml_vec_dot_q6_K_q8_K of arch/x86/quants.c,
// quantize_row_q8_0_ref, quantize_row_q8_1_ref and quantize_row_q8_K_ref of ggml-quants.c, ggml_vec_dot_q4_1_q8_1 of ggml-cpu/quants.c.
//
// For MLX the second is the kernel for processors other than Apple's: _qmm_t of backend/cpu/quantized.cpp computes everything in the dtype of the
// model. The first is every other kernel of MLX: they dequantise in that dtype, and add in float32.
//
// For int8 by row they are the codes that engines make of each token at run time: 255 steps from −most to most, as torchao has them (x times
// the reciprocal of the step, choose_qparams_affine and _quantize_affine of quant_primitives.py) and compressed-tensors (x over the step,
// calculate_qparams of helpers.py), or 254, the step being most over 127.
func Kernels(format string, d hooks.DType) []Kernel {
	switch format {
	case "Q8_0", "Q4_0", "Q5_0":
		return []Kernel{rounds("Q8_0", 32, operandQ80(vectorQ80)), rounds("Q8_0", 32, operandQ80(plainQ80))}
	case "Q4_1", "Q5_1":
		return []Kernel{summed(vectorQ80), summed(plainQ80)}
	case "Q4_K", "Q5_K":
		return []Kernel{rounds("Q8_K", 256, operandQ8K).adds(32, 0)}
	case "Q6_K":
		return []Kernel{rounds("Q8_K", 256, operandQ8K).adds(16, 32)}
	case "int8, by row":
		return []Kernel{byToken(127.5, false), byToken(127.5, true), byToken(127, true), byToken(127, false)}
	case "F16", "BF16":
		d, _ := hooks.ParseDType(format)
		return []Kernel{rounds(format, 1, func(x, bound []float64) { narrowed(d, x, bound) })}
	}
	if strings.HasPrefix(format, "MLX affine") {
		name := d.String()
		all := []Kernel{{Name: name, dtype: d, does: "dequantises %s weights in " + name + ", the product of step and code rounded first"}}
		if d != hooks.F32 { // of sums in float32 any order is right
			all = append(all, Kernel{Name: name + ", in turn", dtype: d, inTurn: true, does: "adds products with %s weights one after the other, each sum rounded to " + name})
		}
		return all
	}
	return nil
}

// rounds is a kernel that does no more than rounding blocks of the operand.
func rounds(name string, elements int, block func(x, bound []float64)) Kernel {
	return Kernel{Name: name, Elements: elements, block: block, does: "rounds the inputs of products with %s weights to " + name}
}

// summed is a kernel that stores the sum of each block with its codes.
func summed(code coder) Kernel {
	k := rounds("Q8_1", 32, operandQ80(code)).adds(32, 0)
	k.stored = code
	return k
}

// adds is a kernel that adds the offsets of groups of a weight apart from its codes, and has codes that are larger by zero.
func (k Kernel) adds(group int, zero float64) Kernel {
	k.group, k.zero = group, zero
	return k
}

// byToken is a step for a whole row, by its largest magnitude over top.
func byToken(top float32, divide bool) Kernel {
	return rounds(fmt.Sprintf("int8 by token, %g steps", 2*top), 0, func(x, bound []float64) {
		most := float32(magnitude(x))
		step := most / top
		coded(x, bound, most, top, float64(step), func(x, _ float32) float64 {
			q := x / step
			if !divide {
				q = x * (1 / step)
			}
			return min(math.RoundToEven(float64(q)), 127)
		})
	})
}

// Round rounds rows of numbers, each so long and of whole blocks, as the engine does. bound, where it is not nil, says how far from x each may be,
// and is made to say it of the result. What lies so near the middle between two codes that engines differ in the code has a bound of one step.
func (k Kernel) Round(row int, x, bound []float64) {
	if k.block == nil {
		return
	}
	n := k.elements(row)
	for at := 0; at+n <= len(x); at += n {
		k.block(x[at:][:n], boundOf(bound, at, n))
	}
}

func (k Kernel) elements(row int) int {
	if k.Elements == 0 {
		return max(row, 1)
	}
	return k.Elements
}

func boundOf(bound []float64, at, n int) []float64 {
	if bound == nil {
		return nil
	}
	return bound[at:][:n]
}

// coder is the code of a number of a block whose largest magnitude is most.
type coder func(x, most float32) float64

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
func operandQ80(code coder) func(x, bound []float64) {
	return func(x, bound []float64) {
		most := float32(magnitude(x))
		coded(x, bound, most, 127, float64(floats.FromF16(floats.F16(most/127))), code)
	}
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

// coded rounds each x to the kernel's multiples of step, of them top in most.
func coded(x, bound []float64, most, top float32, step float64, code coder) {
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
