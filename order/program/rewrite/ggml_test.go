package rewrite_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// keyByKey is ggml's fused attention for few queries in plain loops: queries, keys and values in float16, and one key after the other added to an
// output in float16, whose product is not rounded before. A single query has its keys in parts.
func keyByKey(in []program.Value, scale float32, parts ...[2]int) []float64 {
	heads, tokens, width, keys := in[0].Shape[0], in[0].Shape[1], in[0].Shape[2], in[1].Shape[1]
	q, k, v, out := in[0].Data, in[1].Data, in[2].Data, make([]float64, heads*tokens*width)
	for h := range heads {
		for t := range tokens {
			row := func(x []float64, of int) []float64 { return x[(h*keys+of)*width:][:width] }
			top, sum, all := float32(math.Inf(-1)), float32(0), make([]float32, width)
			for _, part := range parts {
				m, l, o := float32(math.Inf(-1)), float32(0), make([]float64, width)
				for j := part[0]; j < min(part[1], keys); j++ {
					s, by, p := scale*dot16(q[(h*tokens+t)*width:][:width], row(k, j)), float32(1), float32(1)
					if s > m {
						by, m = exp32(m-s), s
						for d := range o {
							o[d] = half(o[d] * float64(by))
						}
					} else {
						p = exp32(s - m)
					}
					for d, x := range row(v, j) {
						o[d] = half(o[d] + float64(p)*half(x))
					}
					l = l*by + p
				}
				old, by := exp32(top-max(top, m)), exp32(m-max(top, m))
				top, sum = max(top, m), sum*old+l*by
				for d := range o {
					all[d] = all[d]*old + float32(o[d])*by
				}
			}
			for d, o := range all {
				out[(h*tokens+t)*width+d] = float64(o * (1 / sum))
			}
		}
	}
	return out
}

func half(x float64) float64 { return floats.Round(hooks.F16, float64(float32(x))) }

func exp32(x float32) float32 { return float32(math.Exp(float64(x))) }

// dot16 is the product of two rows in float16, added in float32.
func dot16(x, y []float64) (sum float32) {
	for i := range x {
		sum += float32(half(x[i])) * float32(half(y[i]))
	}
	return sum
}

// drawnAttention are queries, keys and values in float32, and the reference's attention of them.
func drawnAttention(t *testing.T, heads, tokens, keys, width int) ([]program.Value, *program.Program) {
	t.Helper()
	rng := rand.New(rand.NewPCG(34, 3))
	shapes := [][]int{{heads, tokens, width}, {heads, keys, width}, {heads, keys, width}}
	var in []program.Value
	for _, shape := range shapes {
		x := program.Value{Shape: shape, Data: make([]float64, program.Size(shape))}
		for i := range x.Data {
			x.Data[i] = float64(float32(1.2 * rng.NormFloat64()))
		}
		in = append(in, x)
	}
	own, err := program.Of(scoresToOutput(heads, tokens, keys, width), func(program.Op) string { return "attention of the test" }, 0, shapes[0], shapes, nil)
	if err != nil {
		t.Fatal(err)
	}
	return in, own
}

// inKernel counts the elements that are beyond the bounds of a kernel, and those whose bound is below an eighth of a unit of float16.
func inKernel(t *testing.T, own *program.Program, in []program.Value, y []float64, kernel rewrite.Fused) (outside, near int) {
	t.Helper()
	p, err := rewrite.InKernel(own, 1+slices.Index(rewrite.Kernels, kernel))
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.Eval(program.Call{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: in, Shape: p.Out.Shape})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range x.Data {
		if math.Abs(y[i]-v) > x.Bound[i] {
			outside++
		}
		if x.Bound[i] < math.Abs(v)*floats.Unit(hooks.F16)/8 {
			near++
		}
	}
	return outside, near
}

// ggml's fused attention is within the bounds of its kernel, most of it much nearer than a unit of float16. It is not within those of a kernel that has
// nothing in float16, and neither is a scale that is off by 1 % within its own.
func TestKernelOfGGML(t *testing.T) {
	in, own := drawnAttention(t, 2, 5, 40, 16)
	y := keyByKey(in, 0.5, [2]int{0, 40})
	ggml := rewrite.Fused{Keys: 64, Threads: 1}
	if out, near := inKernel(t, own, in, y, ggml); out > 0 || near < len(y)/2 {
		t.Errorf("of %d elements %d are beyond the bounds, and %d have a bound below an eighth of a unit of float16", len(y), out, near)
	}
	for _, other := range []rewrite.Fused{{Keys: 512}, {Keys: 64}, {Unknown: true}} {
		if out, _ := inKernel(t, own, in, y, other); out < len(y)/2 {
			t.Errorf("of %d elements %d are beyond the bounds of %+v", len(y), out, other)
		}
	}
	if out, _ := inKernel(t, own, in, keyByKey(in, 0.505, [2]int{0, 40}), ggml); out < len(y)/2 {
		t.Errorf("with another scale %d of %d elements are beyond the bounds", out, len(y))
	}
}

// The threads of ggml take parts of the keys of one query where there are many: of 768 cells that hold 600 keys each of two takes 384.
func TestKernelOfGGMLInParts(t *testing.T) {
	in, own := drawnAttention(t, 2, 1, 600, 32)
	one, two := keyByKey(in, 0.5, [2]int{0, 600}), keyByKey(in, 0.5, [2]int{0, 384}, [2]int{384, 600})
	for _, tt := range []struct {
		threads int
		y       []float64
		within  bool
	}{{1, one, true}, {2, two, true}, {1, two, false}, {2, one, false}, {4, two, false}} {
		out, _ := inKernel(t, own, in, tt.y, rewrite.Fused{Keys: 64, Threads: tt.threads})
		if (out == 0) != tt.within {
			t.Errorf("%d threads: %d of %d elements are beyond the bounds", tt.threads, out, len(tt.y))
		}
	}
}

// ggml takes blocks of keys, not key by key, where there are many queries. One query with more keys than a program has room for is in no kernel.
func TestKernelOfGGMLBySize(t *testing.T) {
	for _, tt := range []struct {
		queries, keys int
		fused, most   bool // most: by blocks
	}{{63, 70, true, false}, {64, 70, true, true}, {1, 2048, true, false}, {1, 2049, false, false}, {64, 2049, true, true}} {
		_, own := drawnAttention(t, 1, tt.queries, tt.keys, 2)
		p, err := rewrite.InKernel(own, 1+slices.Index(rewrite.Kernels, rewrite.Fused{Keys: 64, Threads: 1}))
		if err != nil {
			t.Fatal(err)
		}
		if got := rewrite.KernelOf(p) != nil; got != tt.fused {
			t.Errorf("%d queries, %d keys: in the kernel is %t", tt.queries, tt.keys, got)
		}
		if blocks := (tt.keys + 63) / 64; tt.fused && tt.most != (len(p.Steps) < 20*(blocks+1)) {
			t.Errorf("%d queries, %d keys: %d steps", tt.queries, tt.keys, len(p.Steps))
		}
	}
}
