package portweights

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
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
		w := multiplied{Rows: values, Kernel: k, held: &sync.Pool{}}
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
	q := b.Tensor("w", []int{rows, n}, bytes.NewReader(raw), 0)
	dense := q.Dense()
	x := make([]byte, dense.Size())
	if _, err := dense.ReadAt(x, 0); !errors.Is(err, io.EOF) {
		must(t, err)
	}
	values.data = make([]float64, rows*n)
	must(t, floats.Decode(values.data, dense.DType, x))
	var c quant.Codes
	must(t, q.Reader().Codes(&c, 0, rows*n))
	groups := n / c.Group
	for row := range rows {
		steps.data = append(append(steps.data, c.Step[row*groups:][:groups]...), c.Offset[row*groups:][:groups]...)
	}
	values.cols, steps.cols = n, 2*groups
	return values, steps
}

// ggml's kernels give products of trained models within their bounds, also of a token whose one channel is as large as all others together: the parts
// with codes and those with minima are far larger than the products there. What is off by a ten-thousandth is beyond them. TRACEDIFF_PRODUCTS names a
// file of fixtures/weights/products.py --all; -v prints what docs/results/weights.md has.
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
