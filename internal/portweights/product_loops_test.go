package portweights

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/quant"
)

// superBlock is 256 elements of a row in codes from 0 on, groups of which share a scale and a minimum of few bits.
type superBlock struct {
	codes        [256]int
	scales, mins []int // by group
	d, dmin      float32
}

// lanesOf is a product by kernels with so many lanes: lane k adds the products with codes of elements 4k to 4k+3 of every 4·lanes as integers, a block at a
// time, and multiplies the sum with the step in float32. apart: minima have a sum of their own, as in Q4_K; else the integers with them are subtracted from
// those with codes, of which other lanes have the elements, as in Q6_K.
func lanesOf(blocks []superBlock, x []float64, lanes int, apart bool) float32 {
	acc, less := make([]float32, lanes), make([]float32, 4)
	for b, s := range blocks {
		q, step := eightBits(x[256*b:][:256])
		group := 256 / len(s.scales)
		products, minima := make([]int, lanes), make([]int, lanes)
		for i, code := range s.codes {
			products[i/4%lanes] += s.scales[i/group] * code * q[i]
			minima[i/group*lanes/len(s.scales)] += s.mins[i/group] * q[i]
		}
		for k := range lanes {
			if !apart {
				products[k] -= minima[k]
			}
			acc[k] = fused(s.d*step, float32(products[k]), acc[k])
		}
		for k := 0; apart && k < lanes; k++ {
			less[k%4] = fused(-s.dmin*step, float32(minima[k]), less[k%4])
		}
	}
	total := float32(0)
	for _, v := range append(acc, less...) {
		total += v
	}
	return total
}

// groupsOf is a product by kernels with so many lanes that have a group at a time, as those of Q4_1: the operand has a step for each group, and the sum of its
// codes times the step, both in float16.
func groupsOf(blocks []superBlock, x []float64, lanes int) float32 {
	acc, less := make([]float32, lanes), float32(0)
	for b, s := range blocks {
		for g, scale := range s.scales {
			q, step := groupBits(x[256*b+32*g:][:32])
			products, total := make([]int, lanes), 0
			for i, code := range s.codes[32*g:][:32] {
				products[i/4%lanes] += code * q[i]
				total += q[i]
			}
			for k := range lanes {
				acc[k] = fused(float32(s.d*float32(scale))*float16Of(float64(step)), float32(products[k]), acc[k])
			}
			less -= float32(float32(s.dmin*float32(s.mins[g])) * float16Of(float64(step*float32(total))))
		}
	}
	total := less
	for _, v := range acc {
		total += v
	}
	return total
}

// groupBits are the codes and the step of a group of Q8_1.
func groupBits(x []float64) (codes []int, step float32) {
	most := float32(0)
	for _, v := range x {
		most = max(most, float32(math.Abs(v)))
	}
	for _, v := range x {
		codes = append(codes, int(math.RoundToEven(float64(float32(v)*(127/most)))))
	}
	return codes, most / 127
}

// float16Of is the nearest number of float16.
func float16Of(v float64) float32 { return float32(floats.Round(hooks.F16, v)) }

// fused is a·b + c, rounded once.
func fused(a, b, c float32) float32 { return float32(math.FMA(float64(a), float64(b), float64(c))) }

// eightBits are the codes and the step of a block of Q8_K.
func eightBits(x []float64) (codes []int, step float32) {
	most := float32(0)
	for _, v := range x {
		most = max(most, float32(math.Abs(v)))
	}
	for _, v := range x {
		codes = append(codes, int(math.RoundToEven(float64(float32(v)*(127/most)))))
	}
	return codes, 1 / (127 / most)
}

// packed is a format for the loops here.
type packed struct {
	name  string
	group int // elements that share a step and an offset
	codes int // that there are
	zero  int // the code of nought, of a format whose minima are that many steps; 0: they have scales of their own
}

// largeChannels are inputs that are far larger than others, as trained models have them.
var largeChannels = map[string]map[int]float64{
	"one channel": {700: 2400},
	"two channels of one group, of two signs": {700: 2400, 689: -2400},
	"none": {},
}

const ofRow, rowsOf = 2048, 64

// cancelling are an input with large channels, and rows of a weight that is as good as zero there: a code times its step is the minimum.
func cancelling(f packed, large map[int]float64) (x []float64, weight [][]superBlock, values, steps table) {
	rng := rand.New(rand.NewPCG(34, 4))
	for i := range ofRow {
		x = append(x, float64(float32(rng.NormFloat64())))
		if v, ok := large[i]; ok {
			x[i] = v
		}
	}
	values.cols, steps.cols = ofRow, 2*ofRow/f.group
	for range rowsOf {
		var row []superBlock
		var offsets []float64
		for b := range ofRow / 256 {
			s := drawn(rng, 256/f.group, f.codes, f.zero)
			for at := range ofRow {
				if _, ok := large[at]; ok && at/256 == b {
					s.cancel(at%256, f.group)
				}
			}
			row = append(row, s)
			for i, code := range s.codes {
				g := i / f.group
				values.data = append(values.data, float64(float32(float64(s.d)*float64(s.scales[g]*code)-float64(s.dmin)*float64(s.mins[g]))))
			}
			for g, scale := range s.scales {
				steps.data = append(steps.data, float64(s.d)*float64(scale))
				offset := -float64(s.dmin) * float64(s.mins[g])
				if f.zero > 0 { // what a file of codes around nought says
					offset = 0
				}
				offsets = append(offsets, offset)
			}
		}
		weight, steps.data = append(weight, row), append(steps.data, offsets...)
	}
	return x, weight, values, steps
}

// Where parts with codes and parts with minima cancel, no product by plain loops is outside of its bound.
func TestPartsWithMinimaThatCancel(t *testing.T) {
	for _, f := range []packed{{"Q4_K", 32, 16, 0}, {"Q5_K", 32, 32, 0}, {"Q6_K", 16, 64, 32}, {"Q4_1", 32, 16, 0}, {"Q5_1", 32, 32, 0}} {
		for name, large := range largeChannels {
			x, weight, values, steps := cancelling(f, large)
			given := productsBy(t, quant.Kernels(f.name, hooks.F32), x, values, steps)
			for _, lanes := range []int{1, 4, 8, 16} {
				var y []float64
				for r := range weight {
					if strings.HasSuffix(f.name, "_1") {
						y = append(y, float64(groupsOf(weight[r], x, lanes)))
					} else {
						y = append(y, float64(lanesOf(weight[r], x, lanes, f.zero == 0)))
					}
				}
				if n := outside(given, y, 1); n > 0 {
					t.Errorf("%s, %s, %d lanes: %d of %d products are outside of their bounds", f.name, name, lanes, n, len(y))
				}
			}
		}
	}
}

// The same holds for kernels that add offsets apart and leave numbers as they are, as those for Metal do.
func TestOffsetsApartInFloat32(t *testing.T) {
	for _, f := range []packed{{"Q4_0", 32, 16, 8}, {"Q5_0", 32, 32, 16}, {"Q4_1", 32, 16, 0}, {"Q4_K", 32, 16, 0}, {"MLX affine, 4 bits, groups of 64", 64, 16, 0}} {
		k, ok := quant.Unrounded(f.name, f.group)
		if !ok {
			t.Fatalf("%s: not known", f.name)
		}
		for name, large := range largeChannels {
			x, weight, values, steps := cancelling(f, large)
			given := productsBy(t, []quant.Kernel{k}, x, values, steps)
			for _, part := range []int{8, 16, 32} {
				var y []float64
				for r := range weight {
					y = append(y, float64(partsOf(weight[r], x, part)))
				}
				if n := outside(given, y, 1); n > 0 {
					t.Errorf("%s, %s, parts of %d: %d of %d products are outside of their bounds", f.name, name, part, n, len(y))
				}
				if n := outside(given, y, 1.0001); len(large) == 0 && n < len(y)/8 {
					t.Errorf("%s, parts of %d: %d of %d products that are off by a ten-thousandth are found", f.name, part, n, len(y))
				}
			}
		}
	}
}

// partsOf is a product in float32, in parts of so many elements of a group: the products with codes and the numbers have sums, to which the step and
// the minimum come then.
func partsOf(blocks []superBlock, x []float64, part int) float32 {
	total := float32(0)
	for b, s := range blocks {
		group := 256 / len(s.scales)
		for from := 0; from < 256; from += part {
			products, sum := float32(0), float32(0)
			for i, code := range s.codes[from:][:part] {
				v := float32(x[256*b+from+i])
				products = fused(float32(code), v, products)
				sum += v
			}
			g := from / group
			total += float32(float32(s.d*float32(s.scales[g]))*products) - float32(float32(s.dmin*float32(s.mins[g]))*sum)
		}
	}
	return total
}

// drawn is a block with random numbers; its minima are zero steps of a scale, or have scales of their own where that is 0.
func drawn(rng *rand.Rand, groups, codes, zero int) superBlock {
	s := superBlock{scales: make([]int, groups), mins: make([]int, groups), d: float16Of(0.0002 + 0.0001*rng.Float64())}
	s.dmin = s.d
	if zero == 0 {
		s.dmin = float16Of(float64(s.d) * float64(codes) / 4)
	}
	for g := range groups {
		s.scales[g], s.mins[g] = 20+rng.IntN(44), 20+rng.IntN(44)
		if zero > 0 {
			s.mins[g] = s.scales[g] * zero
		}
	}
	for i := range s.codes {
		s.codes[i] = rng.IntN(codes)
	}
	return s
}

// cancel makes the weight of an element as small as its codes allow.
func (s *superBlock) cancel(at, group int) {
	g := at / group
	s.codes[at] = int(math.Round(float64(s.dmin) * float64(s.mins[g]) / (float64(s.d) * float64(s.scales[g]))))
}

// An infinite input makes an infinite product, as in the engine, and no NaN.
func TestInfiniteInputsOfProducts(t *testing.T) {
	k, ok := quant.Unrounded("Q4_1", 32)
	if !ok {
		t.Fatal("Q4_1 is not known")
	}
	x, w := make([]float64, 32), make([]float64, 32)
	for i := range w {
		x[i], w[i] = 1, 0.5
	}
	x[7] = math.Inf(1)
	v := productsBy(t, []quant.Kernel{k}, x, table{32, w}, table{2, []float64{0.5, -0.5}})[0]
	if !math.IsInf(v.Data[0], 1) {
		t.Errorf("the product is %v, want +Inf", v.Data[0])
	}
}
