package diagnose

import (
	"math"
	"slices"
	"sort"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// coding is how a weight may be kept in codes: each number of a group is a code times the group's step. The arithmetic is float32.
type coding struct {
	is Mistake // its Coding says which elements share a step
	// Code takes a number in steps to what it is read as; step is that of a group with its largest number, with its sign.
	code func(x float64) float64
	step func(largest float64) float64
	// By is what the numbers are multiplied by when they are read; before their rounding to the model's dtype, or behind it.
	by     float64
	behind bool
}

// change is the coding of all of a weight.
func (c coding) change() change {
	return change{is: c.is, make: func(w program.Rows, model hooks.DType) program.Rows {
		rows, cols := w.Size()
		group := int(c.is.Coding.Scales)
		var steps []float64 // of columns, or of all
		switch {
		case group == 0:
			group = cols
		case group > 0 && (cols%group != 0 || cols == group): // that is a row
			return nil
		case group < 0:
			if rows < 2 || rows*cols > maxHeld {
				return nil
			}
			row, top := make([]float64, cols), make([]float64, cols)
			for i := range rows {
				if w.Row(row, i) != nil {
					return nil
				}
				for k, x := range row {
					if math.Abs(x) > math.Abs(top[k]) {
						top[k] = x
					}
				}
			}
			if group == int(OfAll) {
				top = slices.Repeat([]float64{largestOf(top)}, cols)
			}
			for _, x := range top {
				steps = append(steps, c.step(x))
			}
		}
		return changed{w, func(row []float64) {
			for at := range row {
				step := 0.0
				if steps != nil {
					step = steps[min(at, len(steps)-1)]
				} else {
					if at%group != 0 {
						continue
					}
					step = c.step(largestOf(row[at:][:group]))
				}
				g := row[at : at+1]
				if steps == nil {
					g = row[at:][:group]
				}
				c.read(g, step, model)
			}
		}}
	}}
}

// read is what is read of some numbers that are kept in steps.
func (c coding) read(g []float64, step float64, model hooks.DType) {
	if step == 0 {
		return
	}
	for i, x := range g {
		code := c.code(float64(float32(x / step)))
		switch {
		case c.by == 0:
			x = float64(float32(code * step))
		case c.behind:
			x = float64(float32(floats.Round(model, float64(float32(code*step))) * float64(float32(c.by))))
		default:
			x = float64(float32(code * float64(float32(step*c.by))))
		}
		g[i] = floats.Round(model, x)
	}
}

// largestOf is the number of the largest size.
func largestOf(x []float64) float64 {
	top := 0.0
	for _, v := range x {
		if math.Abs(v) > math.Abs(top) {
			top = v
		}
	}
	return top
}

// whole are codes that are whole numbers, up to a largest one.
func whole(low, high float64) func(float64) float64 {
	return func(x float64) float64 { return min(max(math.RoundToEven(x), low), high) }
}

// sized is a step of which the largest number has so many.
func sized(most float64, stored func(float64) float64) func(float64) float64 {
	return func(largest float64) float64 {
		step := float64(float32(math.Abs(largest) / most))
		if stored != nil {
			step = stored(step)
		}
		return step
	}
}

// nearestOf are codes that are some numbers, in their order.
func nearestOf(book []float64) func(float64) float64 {
	return func(x float64) float64 {
		k := sort.SearchFloat64s(book, x)
		if k == len(book) || k > 0 && x-book[k-1] <= book[k]-x {
			k--
		}
		return book[k]
	}
}

// The numbers of 4 bits: quantiles of a normal distribution, as QLoRA has them, and those of a sign, two bits of exponent and one of fraction.
var (
	normalFloats = []float64{
		-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
		0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
	}
	float4s = []float64{-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6}
)

// codings are ways to keep a weight beside those of rows and groups with steps in float32.
func codings() []change {
	var all []change
	add := func(c coding) { all = append(all, c.change()) }
	bits := []struct {
		numbers Codes
		most    float64
	}{{Int8, 127}, {Int4, 7}}
	for _, b := range bits {
		for _, g := range []Scales{OfAll, ByColumn} {
			add(coding{is: rounded(b.numbers, g), code: whole(-b.most, b.most), step: sized(b.most, nil)})
		}
		for _, g := range []Scales{ByRow, 32, OfAll} {
			is := rounded(b.numbers, g)
			for _, r := range []float64{b.most / (b.most + 1), (b.most + 1) / b.most} {
				is := is
				is.Kind, is.By, is.N, is.M = "weight.rounded-with-other-steps", literal(r), int(b.most), int(b.most)+1
				if r > 1 {
					is.N, is.M = is.M, is.N
				}
				for _, behind := range []bool{false, true} {
					add(coding{is: is, code: whole(-b.most-1, b.most+1), step: sized(b.most, nil), by: r, behind: behind})
				}
			}
			is.Kind, is.N = "weight.rounded-with-one-step-more", int(b.most)+1
			add(coding{is: is, code: whole(-b.most-1, b.most), step: sized(b.most+1, nil)})
			is.Kind, is.N = "weight.cut-to-codes", 0
			add(coding{is: is, code: func(x float64) float64 { return math.Trunc(x) }, step: sized(b.most, nil)})
			for _, d := range []hooks.DType{hooks.F16, hooks.BF16} {
				is.Kind, is.DType = "weight.rounded-with-narrow-scales", d
				add(coding{is: is, code: whole(-b.most, b.most), step: sized(b.most, func(x float64) float64 { return floats.Round(d, x) })})
			}
		}
	}
	for _, g := range []Scales{32, ByRow, 16, 64} {
		q4 := rounded(Int4, g)
		q4.Kind = "weight.rounded-q4-0"
		add(coding{
			is: q4, code: func(x float64) float64 { return min(math.Floor(x+8.5), 15) - 8 },
			step: func(largest float64) float64 { return float64(float32(largest / -8)) },
		})
		add(coding{is: rounded(NormalFloat4, g), code: nearestOf(normalFloats), step: sized(1, nil)})
		add(coding{is: rounded(Float4E2M1, g), code: nearestOf(float4s), step: sized(6, nil)})
	}
	mx := rounded(Float4E2M1, 32)
	mx.Kind = "weight.rounded-mxfp4"
	add(coding{is: mx, code: nearestOf(float4s), step: func(largest float64) float64 {
		if largest == 0 {
			return 0
		}
		return math.Exp2(math.Floor(math.Log2(math.Abs(largest))) - 2)
	}})
	for _, g := range []Scales{OfAll, ByRow} {
		add(coding{is: rounded(Float8E4M3, g), step: sized(448, nil), code: func(x float64) float64 { return float64(floats.FromF8E4M3(floats.F8E4M3(float32(x)))) }})
		add(coding{is: rounded(Float8E5M2, g), step: sized(57344, nil), code: func(x float64) float64 { return float64(floats.FromF8E5M2(floats.F8E5M2(float32(x)))) }})
	}
	return all
}

// misread are weights whose bits are read as those of another type, or in the other order of bytes, and those that are cut off where they
// should be rounded.
func misread() []change {
	swapped := func(x uint16) uint16 { return x<<8 | x>>8 }
	finite := func(f func(x float64) float32) func(x float64) float64 {
		return func(x float64) float64 { return float64(f(x)) }
	}
	return []change{
		each(Mistake{Kind: "weight.bits-misread", DType: hooks.BF16, By: dtypeTerm(hooks.F16)}, true, finite(func(x float64) float32 { return floats.FromF16(floats.BF16(float32(x))) })),
		each(Mistake{Kind: "weight.bits-misread", DType: hooks.F16, By: dtypeTerm(hooks.BF16)}, true, finite(func(x float64) float32 { return floats.FromBF16(floats.F16(float32(x))) })),
		each(Mistake{Kind: "weight.bytes-swapped", DType: hooks.BF16}, true, finite(func(x float64) float32 { return floats.FromBF16(swapped(floats.BF16(float32(x)))) })),
		each(Mistake{Kind: "weight.bytes-swapped", DType: hooks.F16}, true, finite(func(x float64) float32 { return floats.FromF16(swapped(floats.F16(float32(x)))) })),
		each(Mistake{Kind: "weight.cut-off", DType: hooks.BF16}, true, func(x float64) float64 {
			return float64(math.Float32frombits(math.Float32bits(float32(x)) &^ 0xffff))
		}),
	}
}
