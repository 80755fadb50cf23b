package program_test

import (
	"fmt"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// BenchmarkOperations prints the time of an element of the result at the width of a model of two billion parameters, for a short
// and a long prompt, in emulated bfloat16: values alone, with bounds, and the hull.
func BenchmarkOperations(b *testing.B) {
	const h, heads, kv, d = 2048, 8, 2, 256
	for _, tokens := range []int{16, 512} {
		row := func(seed uint64, shape ...int) program.Value {
			return tensor(numbers(size(shape), seed, bf16), shape...)
		}
		x := row(1, 1, tokens, h)
		q, keys := row(2, 1, heads, tokens, d), row(3, 1, kv, tokens, d)
		probs := row(4, 1, heads, tokens, tokens)
		outs := 2048 * 16 / tokens // of a matrix, so that both take about as long
		for _, c := range []struct {
			name  string
			o     op.Op
			shape []int
			in    []program.Value
			w     []program.Rows
		}{
			{"RMSNorm", op.RMSNorm{Eps: 1e-6, Gain: op.Plain}, x.Shape, []program.Value{x}, []program.Rows{matrix{1, h, numbers(h, 5, bf16)}}},
			{"GELUTanh", op.GELUTanh{}, x.Shape, []program.Value{x}, nil},
			{"Softmax", op.Softmax{}, probs.Shape, []program.Value{probs}, nil},
			{"Scores", op.Scores{Scale: 0.0625}, probs.Shape, []program.Value{q, keys}, nil},
			{"Context", op.Context{}, []int{1, tokens, heads * d}, []program.Value{probs, keys}, nil},
			{"Linear", op.Linear{}, []int{1, tokens, outs}, []program.Value{x}, []program.Rows{matrix{outs, h, numbers(outs*h, 6, bf16)}}},
		} {
			hull := bounded(brain)
			hull.Hull = true
			for _, a := range []struct {
				name string
				program.Arith
			}{{"values", brain}, {"bounds", bounded(brain)}, {"hull", hull}} {
				b.Run(fmt.Sprintf("%s/T=%d/%s", c.name, tokens, a.name), func(b *testing.B) {
					call := program.Call{Arith: a.Arith, In: c.in, W: c.w, Shape: c.shape}
					b.ReportAllocs()
					for b.Loop() {
						eval(b, c.o, call)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size(c.shape)), "ns/element")
				})
			}
		}
	}
}
