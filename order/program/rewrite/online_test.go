package rewrite_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/programtest"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// scoresToOutput is attention as the reference has it: R(R(q·k)·scale), its softmax, R, times the values.
func scoresToOutput(heads, tokens, keys, width int) *programtest.Formula {
	return programtest.Of(func(b *program.Builder, in []program.Var) program.Var {
		s := b.R(b.ScaledDot("scores", "htd,hsd->hts", in[0], in[1], b.Scalar("scale", 0.5)))
		exp := b.Exp("exp", b.Sub("difference", s, b.RowMax(s)))
		p := b.R(b.Div("quotient", exp, b.Sum("sum", exp)))
		return b.Dot("context", "hts,hsd->htd", p, in[2])
	})
}

// online is a fused kernel in plain loops, in float32 where it has float32: keys in blocks, from the first to the last or back, probabilities rounded
// to bfloat16.
func online(q, k, v []float64, heads, tokens, keys, width, block int, back bool) []float64 {
	out := make([]float64, heads*tokens*width)
	for h := range heads {
		for t := range tokens {
			var blocks [][2]int
			for from := 0; from < keys; from += block {
				blocks = append(blocks, [2]int{from, min(from+block, keys)})
			}
			if back {
				slices.Reverse(blocks)
			}
			m, l, o := float32(math.Inf(-1)), float32(0), make([]float32, width)
			for _, b := range blocks {
				s, top := make([]float32, keys), m
				for j := b[0]; j < b[1]; j++ {
					for d := range width {
						s[j] += float32(q[(h*tokens+t)*width+d]) * float32(k[(h*keys+j)*width+d])
					}
					s[j] *= 0.5
					top = max(top, s[j])
				}
				by := float32(math.Exp(float64(m - top)))
				l *= by
				for d := range o {
					o[d] *= by
				}
				for j := b[0]; j < b[1]; j++ {
					p := float32(math.Exp(float64(s[j] - top)))
					l += p
					for d := range o {
						o[d] += floats.RoundBF16(p) * float32(v[(h*keys+j)*width+d])
					}
				}
				m = top
			}
			for d := range o {
				out[(h*tokens+t)*width+d] = float64(floats.RoundBF16(o[d] * (1 / l)))
			}
		}
	}
	return out
}

// Kernels in plain loops give what the form with their blocks allows, mostly to the bit, and so does the kernel that is not known. With other blocks
// some elements are beyond the bounds.
func TestFusedKernels(t *testing.T) {
	const heads, tokens, keys, width = 2, 5, 150, 8
	rng := rand.New(rand.NewPCG(34, 2))
	draw := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = floats.Round(hooks.BF16, 1.5*rng.NormFloat64())
		}
		return x
	}
	q, k, v := draw(heads*tokens*width), draw(heads*keys*width), draw(heads*keys*width)
	in := [][]int{{heads, tokens, width}, {heads, keys, width}, {heads, keys, width}}
	own, err := program.Of(scoresToOutput(heads, tokens, keys, width), func(program.Op) string { return "attention of the test" }, 0, []int{heads, tokens, width}, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !rewrite.Fuses(own) {
		t.Fatal("attention is not found in the program")
	}
	outside := func(y []float64, kernel rewrite.Fused) (equal, outside int) {
		p, err := rewrite.InKernel(own, 1+slices.Index(rewrite.Kernels, kernel))
		if err != nil {
			t.Fatal(err)
		}
		call := program.Call{Arith: program.Arith{DType: hooks.BF16, Emulated: true, Bounds: true}, Shape: p.Out.Shape}
		for i, x := range [][]float64{q, k, v} {
			call.In = append(call.In, program.Value{Shape: in[i], Data: x})
		}
		x, err := p.Eval(call)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range x.Data {
			if y[i] == floats.Round(hooks.BF16, v) {
				equal++
			} else if y[i] < floats.Round(hooks.BF16, v-x.Bound[i]) || y[i] > floats.Round(hooks.BF16, v+x.Bound[i]) {
				outside++
			}
		}
		return equal, outside
	}
	for _, kernel := range rewrite.Kernels {
		if kernel.Unknown || kernel.Rounded || kernel.Threads > 0 {
			continue
		}
		block := kernel.Keys
		if block == 0 {
			block = keys
		}
		y := online(q, k, v, heads, tokens, keys, width, block, kernel.Back)
		if equal, out := outside(y, kernel); out > 0 || equal < len(y)*98/100 {
			t.Errorf("blocks of %d keys, back %t: of %d elements %d are given to the bit, and %d are beyond the bounds", block, kernel.Back, len(y), equal, out)
		}
		if equal, out := outside(y, rewrite.Fused{Unknown: true}); out > 0 {
			t.Errorf("blocks of %d keys, back %t: of a kernel that is not known %d are given to the bit, and %d are beyond the bounds", block, kernel.Back, equal, out)
		}
	}
	if _, out := outside(online(q, k, v, heads, tokens, keys, width, 32, false), rewrite.Fused{Keys: 64, Back: true}); out == 0 {
		t.Error("other blocks give all elements, too")
	}
	for i := range q {
		q[i] *= 1.25
	}
	y := online(q, k, v, heads, tokens, keys, width, 64, false)
	for i := range q {
		q[i] /= 1.25
	}
	if _, out := outside(y, rewrite.Fused{Unknown: true}); out == 0 {
		t.Error("a scale that is off by a quarter is within the bounds of a kernel that is not known")
	}
}

// What is between the two products and is read elsewhere, too, is no fused attention, and neither are captured scores.
func TestNoFusedKernel(t *testing.T) {
	for name, steps := range map[string]func(b *program.Builder, in []program.Var) program.Var{
		"scores are an input": func(b *program.Builder, in []program.Var) program.Var {
			exp := b.Exp("exp", b.Sub("difference", in[0], b.RowMax(in[0])))
			return b.Dot("context", "hts,hsd->htd", b.Div("quotient", exp, b.Sum("sum", exp)), in[1])
		},
		"probabilities are read twice": func(b *program.Builder, in []program.Var) program.Var {
			s := b.Dot("scores", "htd,hsd->hts", in[0], in[1])
			exp := b.Exp("exp", b.Sub("difference", s, b.RowMax(s)))
			p := b.Div("quotient", exp, b.Sum("sum", exp))
			return b.Add("both", b.Dot("context", "hts,hsd->htd", p, in[1]), b.Sum("all", p))
		},
	} {
		shape := []int{2, 3, 3}
		p, err := program.Of(programtest.Of(steps), func(program.Op) string { return name }, 0, shape, [][]int{shape, shape}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rewrite.Fuses(p) {
			t.Errorf("%s: that is no fused attention", name)
		}
	}
}
