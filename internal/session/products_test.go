package session

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
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
func productsBy(t *testing.T, format string, x []float64, values, steps table) (all []program.Value) {
	t.Helper()
	rows, n := values.Size()
	for _, k := range quant.Kernels(format, hooks.F32) {
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

// ggml's kernels give products of a trained model within their bounds, also of the token whose one channel is as large as all others together: the parts with
// codes and those with minima are far larger than the products there. What is off by a ten-thousandth is beyond them.
func TestProductsOfBlocks(t *testing.T) {
	file, err := os.ReadFile("../../fixtures/weights/products.safetensors")
	must(t, err)
	text, err := safetensors.Text(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	h, err := safetensors.Parse(text)
	must(t, err)
	raw, shape := map[string][]byte{}, map[string][]int{}
	for _, x := range h.Tensors {
		raw[x.Name], shape[x.Name] = file[8+len(text):][x.Begin:x.End], x.Shape
	}
	x, n := wideOf(raw["x"]), shape["x"][1]
	looked := 0
	for _, b := range []quant.Block{quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K} {
		format := b.String()
		values, steps := codesOf(t, b, shape[format][0], n, raw[format])
		all := productsBy(t, format, x, values, steps)
		for _, by := range []string{"avx2", "plain", "graph", "repacked"} {
			name := format + "." + by
			if raw[name] == nil {
				continue
			}
			looked++
			y := wideOf(raw[name])
			if n := outside(all, y, 1); n > 0 {
				t.Errorf("%s: %d of %d products are outside of their bounds", name, n, len(y))
			}
			if n := outside(all, y, 1.0001); n < len(y)/4 {
				t.Errorf("%s: %d of %d products that are off by a ten-thousandth are found", name, n, len(y))
			}
		}
	}
	if looked != 26 {
		t.Errorf("%d sets of products, want 26", looked)
	}
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

// Where parts with codes and parts with minima cancel, no product by plain loops is outside of its bound. In each case inputs have few large channels,
// and the weights of these are as good as zero: a code times its step is the minimum.
func TestPartsWithMinimaThatCancel(t *testing.T) {
	const n, rows, blocks = 2048, 64, 2048 / 256
	for _, tt := range []struct {
		format string
		group  int
		codes  int // that there are
		zero   int // the code of nought, of a format whose minima are that many steps; 0: they have scales of their own
	}{{"Q4_K", 32, 16, 0}, {"Q5_K", 32, 32, 0}, {"Q6_K", 16, 64, 32}} {
		for name, large := range map[string]map[int]float64{
			"one channel": {700: 2400},
			"two channels of one group, of two signs": {700: 2400, 689: -2400},
			"none": {},
		} {
			t.Run(tt.format+", "+name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(34, 4))
				x := make([]float64, n)
				for i := range x {
					x[i] = float64(float32(rng.NormFloat64()))
				}
				for at, v := range large {
					x[at] = v
				}
				var values, steps table
				values.cols, steps.cols = n, 2*n/tt.group
				weight := make([][]superBlock, rows)
				for r := range rows {
					var all, offsets []float64
					for b := range blocks {
						s := drawn(rng, 256/tt.group, tt.codes, tt.zero)
						for at := range large {
							if at/256 == b {
								s.cancel(at%256, tt.group)
							}
						}
						weight[r] = append(weight[r], s)
						for i, code := range s.codes {
							g := i / tt.group
							values.data = append(values.data, float64(float32(float64(s.d)*float64(s.scales[g]*code)-float64(s.dmin)*float64(s.mins[g]))))
						}
						for g, scale := range s.scales {
							all = append(all, float64(s.d)*float64(scale))
							if offset := -float64(s.dmin) * float64(s.mins[g]); tt.zero == 0 {
								offsets = append(offsets, offset)
							} else { // what a file of codes around nought says
								offsets = append(offsets, 0)
							}
						}
					}
					steps.data = append(append(steps.data, all...), offsets...)
				}
				given := productsBy(t, tt.format, x, values, steps)
				for _, lanes := range []int{1, 4, 8, 16} {
					var y []float64
					for r := range rows {
						y = append(y, float64(lanesOf(weight[r], x, lanes, tt.zero == 0)))
					}
					if n := outside(given, y, 1); n > 0 {
						t.Errorf("%d lanes: %d of %d products are outside of their bounds", lanes, n, rows)
					}
				}
			})
		}
	}
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
