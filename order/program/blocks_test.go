package program_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// rowOf is one row of inputs, a row of a scalar being one number.
func rowOf(in []program.Value, row, rows int) []program.Value {
	var out []program.Value
	for _, v := range in {
		n := len(v.Data) / rows
		one := tensor(v.Data[row*n:][:n], 1, 1, n)
		if v.Bound != nil {
			one.Bound = v.Bound[row*n:][:n]
		}
		out = append(out, one)
	}
	return out
}

// Rows are computed in blocks of about 1024 elements; a row of one is not, and one that is wider is a block of its own. Each
// row has the value and the bound that it has by itself.
func TestBlocks(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100, 512, 1023, 1024, 1025, 2500} {
		rows := max(3, 2600/n)
		x, y := tensor(numbers(rows*n, 50, bf16), 1, rows, n), tensor(numbers(rows*n, 51, bf16), 1, rows, n)
		a, b := tensor(numbers(rows, 52, bf16), 1, rows, 1), tensor(numbers(rows, 53, bf16), 1, rows, 1)
		w := []program.Rows{matrix{1, n, numbers(n, 54, bf16)}}
		x.Bound = mapped(x.Data, func(v float64) float64 { return v * v * 0x1p-20 })
		for _, c := range []struct {
			o    op.Op
			last int
			w    []program.Rows
			in   []program.Value
		}{
			{op.RMSNorm{Eps: 1e-6, Gain: op.OnePlus}, n, w, []program.Value{x}},
			{op.RMSNorm{Eps: 1e-6, Gain: op.NoScale}, n, nil, []program.Value{x}},
			{op.Softmax{}, n, nil, []program.Value{x}},
			{op.GELUTanh{}, n, nil, []program.Value{x}},
			{op.Std{}, 1, nil, []program.Value{x}},
			{op.Magnitude{Floor: 1e-5}, 1, nil, []program.Value{x}},
			{op.ShiftedReLU{}, n, nil, []program.Value{x, a}},
			{op.Rescale{}, n, nil, []program.Value{y, a, b}},
			{op.Softcap{Cap: 2}, n, nil, []program.Value{y}},
			{op.StreamMean{}, n, nil, []program.Value{x, y, x}},
			{op.ScaleChannels{}, n, w, []program.Value{x}},
		} {
			for _, arith := range []program.Arith{exact, bounded(brain), {DType: hooks.BF16, Emulated: true, Bounds: true, Hull: true, HullLast: true}, {DType: hooks.F32, Emulated: true}} {
				call := program.Call{Arith: arith, In: c.in, W: c.w, Shape: []int{1, rows, c.last}}
				all := eval(t, c.o, call)
				for _, r := range []int{0, 1, 2, 1024/n - 1, 1024 / n, 1024/n + 1, rows / 2, rows - 2, rows - 1} {
					if r < 0 || r >= rows {
						continue
					}
					call.In, call.Shape = rowOf(c.in, r, rows), []int{1, 1, c.last}
					one := eval(t, c.o, call)
					what := fmt.Sprintf("%s, %d rows of %d, row %d, bounds %t", c.o.Kind(), rows, n, r, arith.Bounds)
					sameBits(t, what, all.Data[r*c.last:][:c.last], one.Data)
					if arith.Bounds {
						sameBits(t, what, all.Bound[r*c.last:][:c.last], one.Bound)
					}
				}
			}
		}
	}
}

// Results of products with weights are the same on any number of cores, with and without bounds, in parts, with a bias, in an
// order of summation.
func TestCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	sequential := program.Summations()[0]
	for _, size := range [][3]int{{1, 1, 1}, {5, 3, 7}, {2, 64, 129}, {9, 33, 31}} {
		tokens, n, outs := size[0], size[1], size[2]
		x := tensor(numbers(tokens*n, 60, bf16), 1, tokens, n)
		for _, bias := range []bool{false, true} {
			c := program.Call{In: []program.Value{x}, W: []program.Rows{matrix{outs, n, numbers(outs*n, 61, bf16)}}, Shape: []int{1, tokens, outs}}
			if bias {
				c.W = append(c.W, matrix{1, outs, numbers(outs, 62, bf16)})
			}
			p, err := programOf(op.Linear{Bias: bias}, c)
			if err != nil {
				t.Fatal(err)
			}
			last := len(p.Steps) - 1
			for way := range p.Steps[last].Ways() {
				for _, a := range []program.Arith{
					brain, bounded(brain),
					{DType: hooks.BF16, Emulated: true, Bounds: true, Rigorous: true},
					{DType: hooks.BF16, Emulated: true, Bounds: true, Sum: &sequential},
				} {
					c.Arith = a
					c.Choices = p.Own()
					c.Choices[last].Way = uint8(way)
					var want program.Value
					for _, cores := range []int{1, 2, 3, 16} {
						runtime.GOMAXPROCS(cores)
						got, err := p.Eval(c)
						if err != nil {
							t.Fatal(err)
						}
						if cores == 1 {
							want = got
						}
						if !slices.Equal(got.Data, want.Data) || !slices.Equal(got.Bound, want.Bound) {
							t.Fatalf("%v, bias %t, way %d on %d cores: not the numbers of one core", size, bias, way, cores)
						}
					}
				}
			}
		}
	}
}
