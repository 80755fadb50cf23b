package quant

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Beside is how many numbers a kernel has behind each block of a row, of the weight as of the operand. Of a block of x whose codes are q, beside a
// step d, and of the block's offset m in the weight, the products are
//
//	m·(s − d·Σq)   s being d·Σq as the kernel has it: with the step before it was rounded, and rounded to float16;
//	m·d·Σq and −m·d·Σq, which are nothing together. The engine adds Σ d·q·w without its offsets, and m·s by itself: its roundings are those
//	of numbers that are so much larger.
const Beside = 3

// blockSum is what a kernel has beside the codes of a block: what rounding the sum changed, and the sum.
type blockSum struct{ change, sum float64 }

// sumQ81 is the sum that quantize_row_q8_1 stores beside the codes of x, which are not rounded yet.
func sumQ81(x []float64, code coder) blockSum {
	most := float32(magnitude(x))
	if most == 0 {
		return blockSum{}
	}
	total := 0.0
	for _, v := range x {
		total += code(float32(v), most)
	}
	d := most / 127
	stored := float64(floats.FromF16(floats.F16(d * float32(total))))
	sum := float64(float64(floats.FromF16(floats.F16(d))) * total)
	return blockSum{stored - sum, sum}
}

// Operand is what the kernel multiplies in place of rows of numbers, each so long: rounded in place, where nothing stands beside its blocks.
func (k Kernel) Operand(row int, x, bound []float64) (values, bounds []float64) {
	if k.sum == nil || row%k.Elements != 0 {
		k.Round(row, x, bound)
		return x, bound
	}
	n := k.Elements
	long := row + Beside*(row/n)
	for from := 0; from+row <= len(x); from += row {
		values = append(values, x[from:][:row]...)
		for at := from; at < from+row; at += n {
			s := k.sum(x[at:][:n])
			values = append(values, s.change, s.sum, s.sum)
		}
		own := values[len(values)-long:]
		if bound == nil {
			k.Round(row, own[:row], nil)
			continue
		}
		bounds = append(bounds, bound[from:][:row]...)
		near := bounds[len(bounds)-row:]
		exact := magnitude(near) == 0
		k.Round(row, own[:row], near)
		for b := range row / n {
			e := 0.0
			for _, v := range near[b*n:][:n] {
				e += v
			}
			if !exact { // of the sum of codes, twice; and of what is rounded to float16, on both sides
				e = 2*e + 0x1p-10*(math.Abs(own[row+Beside*b+1])+e) + 0x1p-24
			}
			bounds = append(bounds, e, 0, 0)
		}
	}
	return values, bounds
}

// Columns is how long a row of the weight is as the kernel has it.
func (k Kernel) Columns(row int) int {
	if k.sum == nil || row%k.Elements != 0 {
		return row
	}
	return row + Beside*(row/k.Elements)
}

// Weight makes of the first row numbers of dst, which are a row of a dequantised weight with so many elements in a group, what the kernel
// multiplies. steps and offsets are those of its groups; dst has the length of [Kernel.Columns], or of the row alone.
func (k Kernel) Weight(dst []float64, row, group int, steps, offsets []float64) {
	for g := range offsets {
		if k.sum != nil && len(dst) > row {
			beside := dst[row+Beside*g:][:Beside]
			beside[0], beside[1], beside[2] = offsets[g], offsets[g], -offsets[g]
		}
		if k.dtype == 0 || steps[g] == 0 {
			continue
		}
		for i, v := range dst[g*group:][:group] {
			code := math.Round((v - offsets[g]) / steps[g])
			dst[g*group+i] = narrow(k.dtype, narrow(k.dtype, steps[g]*code)+offsets[g])
		}
	}
}

// Sum is how the kernel adds products; nil: in float32, in any order.
func (k Kernel) Sum() func(w, x, bound []float64) (v, e float64) {
	if !k.inTurn {
		return nil
	}
	round := floats.RoundBF16
	if k.dtype == hooks.F16 {
		round = floats.RoundF16
	}
	return func(w, x, bound []float64) (v, e float64) {
		x = x[:len(w)]
		sum := float32(0)
		for i, a := range w {
			sum = round(sum + round(float32(a*x[i])))
		}
		v = float64(sum)
		if bound == nil {
			return v, 0
		}
		var least, most float32 // rounding keeps the order of numbers: no operand within its bound gives a sum beyond these
		for i, a := range w {
			down, up := a*(x[i]-bound[i]), a*(x[i]+bound[i])
			least = round(least + round(float32(min(down, up))))
			most = round(most + round(float32(max(down, up))))
		}
		return v, max(float64(most)-v, v-float64(least))
	}
}

// narrow rounds to a dtype what an operation gives in float32.
func narrow(d hooks.DType, v float64) float64 { return floats.Round(d, float64(float32(v))) }
