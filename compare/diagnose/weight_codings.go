package diagnose

import (
	"math"
	"slices"
	"sort"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// codes are the numbers of a coding. nearest gives the code for a number in steps, and most is the size of a group's largest number in steps. If kept is set, the
// weights of the model are codes already, so no number is rounded.
type codes struct {
	nearest func(x float64) float64
	most    float64
	kept    bool
}

var codesOf = map[Codes]codes{
	Int8: {nearest: whole(-127, 127), most: 127}, Int4: {nearest: whole(-7, 7), most: 7},
	Float8E4M3:   {nearest: func(x float64) float64 { return float64(floats.FromF8E4M3(floats.F8E4M3(float32(x)))) }, most: 448},
	Float8E5M2:   {nearest: func(x float64) float64 { return float64(floats.FromF8E5M2(floats.F8E5M2(float32(x)))) }, most: 57344},
	NormalFloat4: {nearest: nearestOf(normalFloats), most: 1}, NormalFloat4Short: {nearest: nearestOf(fourDigits(normalFloats)), most: 1},
	Float4E2M1: {nearest: nearestOf(float4s), most: 6},
	Int8Kept:   {unchanged, 127, true}, Int4Kept: {unchanged, 7, true}, Float4E2M1Kept: {unchanged, 6, true},
}

func unchanged(x float64) float64 { return x }

// whole gives codes that are whole numbers from low to high.
func whole(low, high float64) func(float64) float64 {
	return func(x float64) float64 { return min(max(math.RoundToEven(x), low), high) }
}

// nearestOf gives codes that are the numbers of a sorted list.
func nearestOf(book []float64) func(float64) float64 {
	return func(x float64) float64 {
		k := sort.SearchFloat64s(book, x)
		if k == len(book) || k > 0 && x-book[k-1] <= book[k]-x {
			k--
		}
		return book[k]
	}
}

// Numbers of 4 bits: the quantiles of a normal distribution in QLoRA, and the floats with a sign, two bits of exponent and one bit of fraction.
var (
	normalFloats = []float64{
		-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022833234, -0.09105003625154495, 0,
		0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
	}
	float4s = []float64{-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6}
)

// fourDigits are the numbers as people type them.
func fourDigits(all []float64) []float64 {
	short := slices.Clone(all)
	for i, x := range short {
		short[i] = math.RoundToEven(x*1e4) / 1e4
	}
	return short
}

// coded is a weight that is kept in the coding of a mistake: each number of a group is a code times the group's step. The arithmetic is float32.
func coded(w program.Rows, m Mistake, model hooks.DType) program.Rows {
	rows, cols := w.Size()
	if codesOf[m.Coding.Numbers].nearest == nil {
		return nil
	}
	read := readCodes(m, model)
	group := m.Coding.Scales.group(cols)
	switch m.Coding.Scales {
	case OfAll, ByColumn:
		if rows < 2 || rows*cols > maxHeld {
			return nil
		}
		row, top := make([]float64, cols), make([]float64, cols)
		for i := range rows {
			if w.Row(row, i) != nil {
				return nil
			}
			for k, x := range row {
				top[k] = larger(top[k], x)
			}
		}
		if largest := largestOf(top); m.Coding.Scales == OfAll {
			return changed(w, func(row []float64) { read(row, largest) })
		}
		return changed(w, func(row []float64) {
			for k := range row {
				read(row[k:k+1], top[k])
			}
		})
	default:
		if !m.Coding.Scales.fits(cols) {
			return nil
		}
	}
	return changed(w, func(row []float64) {
		for g := range slices.Chunk(row, group) {
			read(g, largestOf(g))
		}
	})
}

// larger is the number with the larger absolute value, and a if the absolute values are equal.
func larger(a, b float64) float64 {
	if math.Abs(b) > math.Abs(a) {
		return b
	}
	return a
}

// largestOf is the number with the largest absolute value.
func largestOf(x []float64) float64 {
	top := 0.0
	for _, v := range x {
		top = larger(top, v)
	}
	return top
}

// readCodes gives the numbers of a group as a port reads them: they are codes with one step. The step depends on largest, the number of the group with the
// largest absolute value, with its sign.
func readCodes(m Mistake, model hooks.DType) func(group []float64, largest float64) {
	of := codesOf[m.Coding.Numbers]
	code, most, step := of.nearest, of.most, stepOf(m)
	read := func(code, step float64) float64 { return code * step }
	switch m.Kind {
	case "weight.rounded-between", "weight.zero-point-off":
		return func(group []float64, _ float64) { betweenEnds(group, of, float64(m.N), model) }
	case "weight.rounded-with-other-steps":
		code = whole(-most-1, most+1)
		read = func(code, step float64) float64 { return code * float64(float32(step*m.By.X)) }
		if m.Rounding == EachStep {
			read = func(code, step float64) float64 {
				return floats.Round(model, float64(float32(code*step))) * float64(float32(m.By.X))
			}
		}
	case "weight.rounded-with-one-step-more":
		code = whole(-most-1, most)
	case "weight.cut-to-codes":
		code = math.Trunc
	case lowScales:
		code = func(x float64) float64 { return of.nearest(min(max(x, -most), most)) }
	case "weight.rounded-q4-0":
		code = func(x float64) float64 { return min(math.Floor(x+8.5), 15) - 8 }
	}
	misread, lanes := misreadings[m.Kind], max(m.N, 1)
	return func(group []float64, largest float64) {
		by, borrows := step(largest), false
		if by == 0 {
			return
		}
		for i, x := range group {
			u := x / by
			if !of.kept {
				u = float64(float32(u))
			}
			is := code(u)
			if misread != nil {
				borrowed := borrows && i%lanes != 0
				borrows = is < 0 || is == 0 && borrowed
				is = misread(is, most+1, borrowed)
			}
			group[i] = floats.Round(model, float64(float32(read(is, by))))
		}
	}
}

// stepOf gives the step of a group by its number with the largest absolute value.
func stepOf(m Mistake) func(largest float64) float64 {
	most := codesOf[m.Coding.Numbers].most
	switch {
	case m.Coding.Scales == NoScale:
		return func(float64) float64 { return 1 }
	case m.Kind == "weight.rounded-with-one-step-more":
		most++
	case m.Kind == "weight.rounded-with-narrow-scales":
		return func(largest float64) float64 {
			return floats.Round(m.DType, float64(float32(math.Abs(largest)/most)))
		}
	case m.Kind == "weight.rounded-q4-0":
		return func(largest float64) float64 { return float64(float32(largest / -8)) }
	case m.Kind == "weight.rounded-mxfp4":
		return func(largest float64) float64 { return 4 * powerBelow(largest/16) }
	case m.Kind == lowScales:
		return func(largest float64) float64 { return powerBelow(float64(float32(math.Abs(largest) / most))) }
	}
	return func(largest float64) float64 { return float64(float32(math.Abs(largest) / most)) }
}

// lowScales is the mistake of scales that are too small for the largest number of a group.
const lowScales Kind = "weight.rounded-with-low-scales"

// powerBelow is the largest power of two that is not above the absolute value of x; 0 for 0.
func powerBelow(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Exp2(math.Floor(math.Log2(math.Abs(x))))
}

// misreadings give the code that a port reads if the port takes the bits of a code for a different coding. The right codes are whole numbers from −half to
// half − 1. The code is borrowed from if the code before it in the same word is negative, or is 0 and is borrowed from.
var misreadings = map[Kind]func(code, half float64, borrowed bool) float64{
	"weight.codes-with-offset": func(code, half float64, _ bool) float64 {
		if code < 0 {
			return code + half
		}
		return code - half
	},
	"weight.codes-unsigned": func(code, half float64, _ bool) float64 {
		if code < 0 {
			return code + 2*half
		}
		return code
	},
	"weight.codes-without-sign": func(code, _ float64, _ bool) float64 { return math.Abs(code) },
	"weight.codes-saturated":    func(code, _ float64, _ bool) float64 { return min(code, -1) },
	"weight.codes-borrowed": func(code, _ float64, borrowed bool) float64 {
		if borrowed {
			return code - 1
		}
		return code
	},
}

// betweenEnds rounds a group to steps between its least and its greatest number. The zero point is off by a number of steps.
func betweenEnds(group []float64, of codes, off float64, model hooks.DType) {
	low, high, most := slices.Min(group), slices.Max(group), 2*of.most+1
	step := float64(float32(float64(float32(high-low)) / most))
	if !(step > 0) {
		return
	}
	zero := math.RoundToEven(float64(float32(-low / step)))
	for i, x := range group {
		if of.kept {
			group[i] = floats.Round(model, float64(float32(x-float64(float32(off*step)))))
			continue
		}
		q := min(max(math.RoundToEven(float64(float32(x/step)))+zero, 0), most)
		group[i] = floats.Round(model, float64(float32((q-zero-off)*step)))
	}
}

// rounded is the mistake of a weight that is kept in a coding.
func rounded(numbers Codes, scales Scales) Mistake {
	return Mistake{Kind: "weight.rounded", Coding: Coding{numbers, scales}}
}

// groups are the sizes of groups that are tried. Where each shard of a weight has its own scales, a row has several.
var groups = []Scales{8, 16, 32, 64, 128, ByHalfRow, ByQuarterRow}

// roundedInRows are weights that are kept in whole numbers, with a scale for each row or group.
func roundedInRows() (all []Mistake) {
	for _, g := range append([]Scales{ByRow}, groups...) {
		all = append(all, rounded(Int8, g), rounded(Int4, g))
	}
	for _, numbers := range []Codes{Int4, Int8, Int4Kept, Int8Kept} {
		for _, g := range append(slices.Clone(groups), ByRow) {
			for _, off := range []int{0, 1, -1} {
				m := rounded(numbers, g)
				if m.Kind, m.N = "weight.rounded-between", off; off != 0 {
					m.Kind = "weight.zero-point-off"
				}
				if off != 0 || !codesOf[numbers].kept {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// roundedOtherwise are weights that are kept in few bits in other ways.
func roundedOtherwise() (all []Mistake) {
	for _, numbers := range []Codes{Int8, Int4} {
		most := int(codesOf[numbers].most)
		all = append(all, rounded(numbers, OfAll), rounded(numbers, ByColumn))
		for _, g := range []Scales{ByRow, 32, OfAll} {
			for _, of := range [][2]int{{most, most + 1}, {most + 1, most}} {
				m := rounded(numbers, g)
				m.Kind, m.By, m.N, m.M = "weight.rounded-with-other-steps", literal(float64(of[0])/float64(of[1])), of[0], of[1]
				behind := m
				behind.Rounding = EachStep
				all = append(all, m, behind)
			}
			more, cut, narrow := rounded(numbers, g), rounded(numbers, g), rounded(numbers, g)
			more.Kind, more.N = "weight.rounded-with-one-step-more", most+1
			cut.Kind, narrow.Kind = "weight.cut-to-codes", "weight.rounded-with-narrow-scales"
			all = append(all, more, cut)
			for _, narrow.DType = range []hooks.DType{hooks.F16, hooks.BF16} {
				all = append(all, narrow)
			}
		}
	}
	all = append(all, misreadInGroups()...)
	for _, g := range append([]Scales{ByRow}, groups...) {
		q4, low := rounded(Int4, g), rounded(Int4, g)
		q4.Kind, low.Kind = "weight.rounded-q4-0", lowScales
		all = append(all, q4, rounded(NormalFloat4, g), rounded(NormalFloat4Short, g), rounded(Float4E2M1, g))
		for _, low.Coding.Numbers = range []Codes{Float4E2M1, Float4E2M1Kept, Float8E4M3, Int8, Int4} {
			all = append(all, low)
		}
	}
	mx := rounded(Float4E2M1, 32)
	mx.Kind = "weight.rounded-mxfp4"
	all = append(all, mx)
	for _, g := range []Scales{OfAll, ByRow} {
		all = append(all, rounded(Float8E4M3, g), rounded(Float8E5M2, g))
	}
	return all
}

// misreadInGroups are weights whose codes are read in a wrong way.
func misreadInGroups() (all []Mistake) {
	for _, numbers := range []Codes{Int8, Int4, Int8Kept, Int4Kept} {
		for _, g := range []Scales{ByRow, 32, 128, OfAll} {
			for _, kind := range []Kind{"weight.codes-with-offset", "weight.codes-unsigned", "weight.codes-without-sign", "weight.codes-saturated", "weight.codes-borrowed"} {
				m := rounded(numbers, g)
				switch m.Kind = kind; {
				case kind == "weight.codes-borrowed":
					for _, m.N = range []int{2, 4, 8} {
						all = append(all, m)
					}
				case kind == "weight.codes-saturated" && (codesOf[numbers].most < 127 || g == OfAll): // no instruction saturates to 4 bits
				case kind != "weight.codes-without-sign" || !codesOf[numbers].kept: // else it is weight.unsigned
					all = append(all, m)
				}
			}
		}
	}
	return all
}
