package quant

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// beside is how many numbers follow a row for each group of the weight, in the weight's row and in the operand's. A kernel adds the offset m of a group
// apart from its codes. Where the operand has codes q and a step d in that group, and the weight has w, the products are
//
//	m·(s − d·Σq)   s is d·Σq as the kernel has it: Q8_1 takes the step before it is rounded, and rounds the sum to float16; Q8_K keeps Σq;
//	m·z and −m·z   their sum is zero, and z is the larger of |d·Σq| and ‖d·q‖. The engine adds m·s, and it adds Σ d·q·(w − m) in as many parts as it has
//	               lanes: its roundings are as large as for numbers of size z.
//
// Products of codes are integers. A kernel that adds the products of a block before it converts to float32 has smaller errors, and processors differ
// in their number of lanes: the bound allows for every way.
const beside = 3

// sums are what a kernel needs of a group of its operand: by how much rounding changed the sum, and the size of the numbers that are added apart.
type sums struct{ change, size float64 }

// sumsQ81 computes the sums of x, a group of Q8_1 before rounding, as quantize_row_q8_1 does.
func sumsQ81(x []float64, code coder) sums {
	most := float32(magnitude(x))
	if most == 0 {
		return sums{}
	}
	total, squares := 0.0, 0.0
	for _, v := range x {
		q := code(float32(v), most)
		total += q
		squares += float64(q * q)
	}
	d := most / 127
	stored, step := float64(floats.FromF16(floats.F16(d*float32(total)))), float64(floats.FromF16(floats.F16(d)))
	return sums{stored - float64(step*total), step * max(math.Abs(total), math.Sqrt(squares))}
}

// sumsQ8K computes them for x, a group after it was rounded, whose sum is not rounded once more. A group with an infinity or a NaN has no size: its
// products have none either, and z would turn an infinity into a NaN.
func sumsQ8K(x []float64) sums {
	total, squares := 0.0, 0.0
	for _, v := range x {
		total += v
		squares += float64(v * v)
	}
	if math.IsInf(squares, 0) || math.IsNaN(squares) {
		return sums{}
	}
	return sums{0, max(math.Abs(total), math.Sqrt(squares))}
}

// sums computes the sums of a group of the operand, from the group before it is rounded and after.
func (k Kernel) sums(x, rounded []float64) sums {
	if k.stored != nil {
		return sumsQ81(x, k.stored)
	}
	return sumsQ8K(rounded)
}

// apart reports whether the kernel adds offsets apart from codes in rows of so many numbers.
func (k Kernel) apart(row int) bool { return k.group != 0 && row%k.Elements == 0 }

// Operand is the kernel's operand for rows of numbers of the given length: rounded in place, if no numbers follow its blocks.
func (k Kernel) Operand(row int, x, bound []float64) (values, bounds []float64) {
	if !k.apart(row) {
		k.Round(row, x, bound)
		return x, bound
	}
	long := k.Columns(row)
	values = make([]float64, 0, len(x)/max(row, 1)*long)
	for from := 0; from+row <= len(x); from += row {
		own, at := x[from:][:row], len(values)
		values = append(values, own...)
		rounded := values[at:][:row]
		var near []float64
		if bound != nil {
			bounds = append(bounds, bound[from:][:row]...)
			near = bounds[len(bounds)-row:]
		}
		exact := magnitude(near) == 0
		k.Round(row, rounded, near)
		for g := 0; g < row; g += k.group {
			b := k.sums(own[g:][:k.group], rounded[g:][:k.group])
			values = append(values, b.change, b.size, b.size)
			if near != nil {
				bounds = append(bounds, k.ofSum(near[g:][:k.group], b, exact), 0, 0)
			}
		}
	}
	return values, bounds
}

// ofSum is how far off what rounding the sum of a group changed may be, where each number of the group is within its bound of near.
func (k Kernel) ofSum(near []float64, b sums, exact bool) float64 {
	if exact || k.stored == nil {
		return 0
	}
	e := 0.0
	for _, v := range near {
		e += v
	}
	// Of the sum of codes, twice; and of what is rounded to float16, on both sides.
	return 2*e + 0x1p-10*(b.size+e) + 0x1p-24
}

// Columns is how long a row of the weight is as the kernel has it.
func (k Kernel) Columns(row int) int {
	if !k.apart(row) {
		return row
	}
	return row + beside*(row/k.group)
}

// Weight turns the first row numbers of dst, a row of a dequantised weight with group elements a group, into the kernel's operand. steps and
// offsets are the groups'; dst has the length of [Kernel.Columns], or of only the row.
func (k Kernel) Weight(dst []float64, row, group int, steps, offsets []float64) {
	for g := range offsets {
		if k.group != 0 && len(dst) > row {
			m := offsets[g] - float64(k.zero*steps[g])
			behind := dst[row+beside*g:][:beside]
			behind[0], behind[1], behind[2] = m, m, -m
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
