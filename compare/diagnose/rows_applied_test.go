package diagnose

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// What is done to sums, to rows and by the position has the numbers of plain loops.
func TestSumsAndRowsAreApplied(t *testing.T) {
	m := tiny(t, "qwen3-tiny")
	norm := operationOf(t, m, "layers.1.input_layernorm", 0) // three tokens
	x, w, eps := read(t, m, "layers.1.in", 0), weightsOf(t, m, "layers.1.input_layernorm.weight"), m.List.Config.RMSNormEps
	width := len(w)
	rows := func(square func(at int) float64) []float64 {
		y := make([]float64, len(x))
		for at := 0; at < len(x); at += width {
			for i, g := range w {
				y[at+i] = x[at+i] / math.Sqrt(square(at)+eps) * g
			}
		}
		return y
	}
	squares := func(at int, counts func(i int) float64) (sum float64) {
		for i, v := range x[at:][:width] {
			sum += counts(i) * v * v / float64(width)
		}
		return sum
	}
	one := func(int) float64 { return 1 }
	terms := append(slices.Repeat([]float64{2}, 3), slices.Repeat([]float64{0.5}, width-3)...)
	tail := norm.signed(m)
	place := func(prim program.Prim, arg int) string {
		i := slices.IndexFunc(tail.Steps, func(s program.Step) bool { return s.Prim == prim })
		return placed(edit.Place{Step: tail.PlaceOf(i).Step, Arg: arg})
	}
	own := rows(func(at int) float64 { return squares(at, one) })
	byPosition := func(past int, of func(p float64) float64) []float64 {
		y := slices.Clone(own)
		for i := range y {
			y[i] *= of(float64(past + i/width))
		}
		return y
	}
	scale := slices.IndexFunc(tail.Steps, func(s program.Step) bool { return s.Prim == program.Rsqrt })
	reader := slices.IndexFunc(tail.Steps, func(s program.Step) bool {
		return slices.ContainsFunc(s.Args, func(v program.Var) bool { return v.Step == scale })
	})
	arg := slices.IndexFunc(tail.Steps[reader].Args, func(v program.Var) bool { return v.Step == scale })
	atScale := edit.Place{Step: tail.PlaceOf(reader).Step, Arg: arg}
	atX := edit.Place{Step: tail.PlaceOf(slices.IndexFunc(tail.Steps, func(s program.Step) bool { return s.Prim == program.Mul })).Step, Arg: 0}
	layers := slices.Repeat([]float64{math.NaN()}, m.List.Config.NumLayers)
	layers[1] = 0.25
	epsAt := slices.IndexFunc(tail.Steps, func(s program.Step) bool { return s.Prim == program.Number && s.Number().Value == eps })
	for _, c := range []struct {
		m    Mistake
		want []float64
	}{
		{Mistake{Kind: "norm.about-mean"}, rows(func(at int) float64 {
			mean := 0.0
			for _, v := range x[at:][:width] {
				mean += v / float64(width)
			}
			return squares(at, one) - mean*mean
		})},
		{Mistake{Kind: "sum.terms", Axis: "channels", Numbers: makeNumbers(terms), Edit: place(program.Sum, -1)}, rows(func(at int) float64 {
			return squares(at, func(i int) float64 { return terms[i] })
		})},
		{Mistake{Kind: "value.of-one-index", Axis: "tokens", N: 1, M: 1, Edit: placed(atScale)}, rows(func(int) float64 { return squares(width, one) })},
		{Mistake{Kind: "value.of-last-index", Axis: "tokens", M: 1, Edit: placed(atScale)}, rows(func(int) float64 { return squares(2*width, one) })},
		{Mistake{Kind: "value.of-block-index", Axis: "tokens", N: 2, M: 1, Edit: placed(atScale)}, rows(func(at int) float64 { return squares(at/(2*width)*2*width, one) })},
		{Mistake{Kind: "value.of-index-before", Axis: "tokens", M: 1, Edit: placed(atScale)}, rows(func(at int) float64 { return squares(max(at-width, 0), one) })},
		{Mistake{Kind: "value.of-index-after", Axis: "tokens", M: 1, Edit: placed(atScale)}, rows(func(at int) float64 { return squares(min(at+width, 2*width), one) })},
		{Mistake{Kind: "value.of-rank", N: 2, Edit: placed(atScale, atX)}, func() []float64 {
			y := make([]float64, len(x))
			for at := 0; at < len(x); at += width {
				row := slices.Sorted(slices.Values(x[at:][:width]))
				for i, g := range w {
					y[at+i] = x[at+i] * row[width-2] * g
				}
			}
			return y
		}()},
		{Mistake{Kind: "factor.by-position", Other: "1/√(1+p)", X: some(3), Edit: placed(edit.Place{Arg: result})}, byPosition(0, func(p float64) float64 { return 3 / math.Sqrt(1+p) })},
		{Mistake{Kind: "factor.by-late-position", Other: "p", X: some(0.75), Edit: placed(edit.Place{Arg: result})}, byPosition(0, func(p float64) float64 { return max(1, 0.75*p) })},
		{Mistake{Kind: "number.of-layers", Axis: layersAxis, Numbers: makeNumbers(layers), Edit: placed(tail.PlaceOf(epsAt))}, rows(func(at int) float64 { return squares(at, one) - eps + 0.25 })},
		{Mistake{Kind: "precision.step-stored", DType: hooks.F16, Edit: place(program.Rsqrt, -1)}, func() []float64 {
			y := make([]float64, len(x))
			for at := 0; at < len(x); at += width {
				by := floats.Round(hooks.F16, 1/math.Sqrt(squares(at, one)+eps))
				for i, g := range w {
					y[at+i] = x[at+i] * by * g
				}
			}
			return y
		}()},
		{Mistake{Kind: "factors.inserted", Axis: "channels, layers", Of: theResult, Edit: placed(edit.Place{Arg: result}), Numbers: makeNumbers(byChannelAndLayer(width, len(layers)))}, func() []float64 {
			y := slices.Clone(own)
			for i := range y {
				y[i] *= byChannelAndLayer(width, len(layers))[i%width*len(layers)+1]
			}
			return y
		}()},
	} {
		makes(t, m, norm, c.m, c.want)
	}
	probs := operationOf(t, m, "layers.1.self_attn.probs_f32", 1) // two heads of four keys
	scores := read(t, m, "layers.1.self_attn.scores_masked", 1)
	makes(t, m, probs, Mistake{Kind: "softmax.slots-to-block", N: 8}, softmaxRows(scores, 4, 4))
	twice := slices.Clone(scores)
	twice[1], twice[5] = twice[1]+math.Ln2, twice[5]+math.Ln2
	makes(t, m, probs, Mistake{Kind: "softmax.key-twice", N: 1}, softmaxRows(twice, 4, 0))
	diagonal := slices.Clone(scores)
	diagonal[3], diagonal[7] = diagonal[3]+math.Ln2, diagonal[7]+math.Ln2
	makes(t, m, probs, Mistake{Kind: "softmax.own-key-twice"}, softmaxRows(diagonal, 4, 0))
	three := softmaxRows(slices.Concat(scores[:3], scores[4:7]), 3, 0)
	makes(t, m, probs, Mistake{Kind: "softmax.whole-blocks", N: 3}, slices.Concat(three[:3], []float64{0}, three[3:], []float64{0}))

	product := operationOf(t, m, "layers.1.self_attn.o_proj", 0)
	in, matrix := read(t, m, "layers.1.self_attn.context", 0), weightsOf(t, m, "layers.1.self_attn.o_proj.weight")
	cols := len(in) / 3
	outs := len(matrix) / cols
	shifts := make([]float64, outs)
	for i := range shifts {
		shifts[i] = float64(i%3) / 4
	}
	y := make([]float64, 3*outs)
	for i := range y {
		for c, v := range in[i/outs*cols:][:cols] {
			y[i] += v * (matrix[i%outs*cols+c] + shifts[i%outs])
		}
	}
	makes(t, m, product, Mistake{Kind: "weight.shifted", Place: order.NameOf("layers.1.self_attn.o_proj.weight").Role(), Axis: "channels", Numbers: makeNumbers(shifts)}, y)
}

// byChannelAndLayer are different numbers for each channel and layer.
func byChannelAndLayer(channels, layers int) (all []float64) {
	for i := range channels * layers {
		all = append(all, 1+float64(i)/16)
	}
	return all
}
