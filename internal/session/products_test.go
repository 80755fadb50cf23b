package session

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/internal/safetensors"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// table is a matrix of rows in memory.
type table struct {
	cols int
	data []float64
}

func (m table) Size() (rows, cols int) { return len(m.data) / m.cols, m.cols }

func (m table) Row(dst []float64, i int) error {
	copy(dst, m.data[i*m.cols:][:m.cols])
	return nil
}

// productsBy are the products of tokens with a weight of a format, as each kernel that is known for the format has them, with their bounds in float32.
func productsBy(t *testing.T, kernels []quant.Kernel, x []float64, values, steps table) (all []program.Value) {
	t.Helper()
	rows, n := values.Size()
	for _, k := range kernels {
		w := multiplied{Rows: values, Kernel: k}
		if k.OfCodes() {
			w.steps = steps
		}
		in := program.Value{Shape: []int{1, len(x) / n, n}, Data: x}
		v, err := program.Eval(op.Linear{}, program.Call{
			Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true},
			In:    []program.Value{in}, W: []program.Rows{w}, Shape: []int{1, len(x) / n, rows},
		})
		must(t, err)
		all = append(all, v)
	}
	return all
}

// outside is how many of some products no kernel gives within its bounds: those of the one that gives most.
func outside(all []program.Value, products []float64, times float64) int {
	least := len(products)
	for _, v := range all {
		n := 0
		for i, y := range products {
			if y = float64(float32(y * times)); y < float64(float32(v.Data[i]-v.Bound[i])) || y > float64(float32(v.Data[i]+v.Bound[i])) {
				n++
			}
		}
		least = min(least, n)
	}
	return least
}

// codesOf are rows of a weight in blocks: their values, and their steps and offsets as a port keeps them.
func codesOf(t *testing.T, b quant.Block, rows, n int, raw []byte) (values, steps table) {
	t.Helper()
	r := b.Tensor("w", []int{rows, n}, bytes.NewReader(raw), 0).Reader()
	x := make([]float32, rows*n)
	must(t, r.Values(x, 0))
	var c quant.Codes
	must(t, r.Codes(&c, 0, rows*n))
	for _, v := range x {
		values.data = append(values.data, float64(v))
	}
	groups := n / c.Group
	for row := range rows {
		steps.data = append(append(steps.data, c.Step[row*groups:][:groups]...), c.Offset[row*groups:][:groups]...)
	}
	values.cols, steps.cols = n, 2*groups
	return values, steps
}

// ggml's kernels give products of trained models within their bounds, also of a token whose one channel is as large as all others together: the parts
// with codes and those with minima are far larger than the products there. What is off by a ten-thousandth is beyond them. TRACEDIFF_PRODUCTS names a
// file of fixtures/weights/products.py --all; -v prints what docs/weights.md has.
func TestProductsOfBlocks(t *testing.T) {
	path, own := os.LookupEnv("TRACEDIFF_PRODUCTS")
	if !own {
		path = "../../fixtures/weights/products.safetensors"
	}
	file, err := os.ReadFile(path)
	must(t, err)
	text, err := safetensors.Text(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	h, err := safetensors.Parse(text)
	must(t, err)
	raw, shape := map[string][]byte{}, map[string][]int{}
	for _, x := range h.Tensors {
		raw[x.Name], shape[x.Name] = file[8+len(text):][x.Begin:x.End], x.Shape
	}
	for _, b := range []quant.Block{quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K} {
		sets, products, beyond, worst := 0, 0, 0, 0.0
		var power []float64
		for _, name := range slices.Sorted(maps.Keys(raw)) {
			layer, ok := strings.CutSuffix(name, "/"+b.String())
			if !ok {
				continue
			}
			x := wideOf(raw[layer+"/x"])
			values, steps := codesOf(t, b, shape[name][0], shape[layer+"/x"][1], raw[name])
			all := productsBy(t, quant.Kernels(b.String(), hooks.F32), x, values, steps)
			power = append(power, smallest(all[0]))
			for _, by := range []string{".avx2", ".plain", ".graph", ".repacked"} {
				if raw[name+by] == nil {
					continue
				}
				y := wideOf(raw[name+by])
				n := outside(all, y, 1)
				if sets, products, beyond = sets+1, products+len(y), beyond+n; n > 0 {
					t.Errorf("%s%s: %d of %d products are outside of their bounds", name, by, n, len(y))
				}
				if n := outside(all, y, 1.0001); n < len(y)/4 && !own {
					t.Errorf("%s%s: %d of %d products that are off by a ten-thousandth are found", name, by, n, len(y))
				}
				worst = max(worst, share(all, y))
			}
		}
		if sets == 0 {
			t.Errorf("%v: no products", b)
			continue
		}
		slices.Sort(power)
		t.Logf("| %v | %d | %d | %d | %.2f | %.2g |", b, sets, products, beyond, worst, power[len(power)/2])
	}
}

// smallest is the smallest error of scale that takes a product out of its bound.
func smallest(v program.Value) float64 {
	least := math.Inf(1)
	for i, x := range v.Data {
		if x != 0 {
			least = min(least, v.Bound[i]/math.Abs(x))
		}
	}
	return least
}

// share is how much of its bound the product that is worst needs, without its last rounding, by the kernel that suits best.
func share(all []program.Value, products []float64) float64 {
	least := math.Inf(1)
	for _, v := range all {
		worst := 0.0
		for i, y := range products {
			worst = max(worst, (math.Abs(y-v.Data[i])-0x1p-24*math.Abs(y))/v.Bound[i])
		}
		least = min(least, worst)
	}
	return least
}

func wideOf(raw []byte) []float64 {
	x := make([]float64, len(raw)/4)
	for i := range x {
		x[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return x
}

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
	for _, f := range []packed{{"Q4_K", 32, 16, 0}, {"Q5_K", 32, 32, 0}, {"Q6_K", 16, 64, 32}} {
		for name, large := range largeChannels {
			x, weight, values, steps := cancelling(f, large)
			given := productsBy(t, quant.Kernels(f.name, hooks.F32), x, values, steps)
			for _, lanes := range []int{1, 4, 8, 16} {
				var y []float64
				for r := range weight {
					y = append(y, float64(lanesOf(weight[r], x, lanes, f.zero == 0)))
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
	half := func(v float64) float32 { return float32(floats.Round(hooks.F16, v)) }
	s := superBlock{scales: make([]int, groups), mins: make([]int, groups), d: half(0.0002 + 0.0001*rng.Float64())}
	s.dmin = s.d
	if zero == 0 {
		s.dmin = half(float64(s.d) * float64(codes) / 4)
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
