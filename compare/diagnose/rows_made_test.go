package diagnose_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
)

// normedBy are rows over the root of what a port takes for their mean square, times a weight.
func normedBy(x, w []float64, eps float64, square func(row []float64) float64) []float64 {
	y := make([]float64, len(x))
	for at := 0; at < len(x); at += len(w) {
		by := 1 / math.Sqrt(square(x[at:][:len(w)])+eps)
		for i := range w {
			y[at+i] = float64(float32(x[at+i] * by * w[i]))
		}
	}
	return y
}

// meanSquare is the sum of the squares of the first n numbers of a row, over a number of them.
func meanSquare(row []float64, n, of int) (mean float64) {
	for _, v := range row[:n] {
		mean += v * v / float64(of)
	}
	return mean
}

// Norms whose sums go over other terms, or whose scale is that of another row, are named, with the layers that have numbers of their own. What only looks like it is not.
func TestSumsAndRowsAreNamed(t *testing.T) {
	const first, second = "layers.0.input_layernorm", "layers.2.input_layernorm"
	norm := func(square func(row []float64) float64) func(in, w [][]float64) []float64 {
		return func(in, w [][]float64) []float64 { return normedBy(in[0], w[0], 1e-6, square) }
	}
	times := func(by float64) func(in, w [][]float64) []float64 {
		return func(in, w [][]float64) []float64 {
			y := normed(in[0], w[0], 1e-6)
			for i := range y {
				y[i] = float64(float32(y[i] * by))
			}
			return y
		}
	}
	last := func(in, w [][]float64) []float64 {
		whole := len(in[0]) - len(w[0])
		return normedBy(in[0], w[0], 1e-6, func([]float64) float64 { return meanSquare(in[0][whole:], len(w[0]), len(w[0])) })
	}
	for _, c := range []struct {
		name         string
		wrong, other func(in, w [][]float64) []float64 // of the first entry and of the second
		kind         diagnose.Kind
		says         string
	}{
		{"squares about the mean", norm(func(row []float64) float64 {
			mean := 0.0
			for _, v := range row {
				mean += v / 16
			}
			sum := 0.0
			for _, v := range row {
				sum += (v - mean) * (v - mean) / 16
			}
			return sum
		}), nil, "norm.about-mean", "the norm divides by the standard deviation, not by the root mean square"},
		{"a tail left out", norm(func(row []float64) float64 { return meanSquare(row, 12, 16) }), nil, "sum.terms", "the terms of step rms_norm.sum of mean are multiplied by 0 at channels 12 to 15"},
		{"the mean of the first", norm(func(row []float64) float64 { return meanSquare(row, 8, 8) }), nil, "sum.terms", "the terms of step rms_norm.sum of mean are multiplied by 2 at channels 0 to 7; 0 at channels 8 to 15"},
		{"the scale of the last token", last, nil, "value.of-last-index", "step rms_norm.rsqrt has the value of the last index at all tokens"},
		{"a factor a layer", times(0.5), times(0.75), "factors.inserted", "the result is multiplied by 0.5 at layer 0; 0.75 at layer 2"},
		{"a sum that no rule gives", norm(func(row []float64) float64 { return meanSquare(row, 16, 16) * (1.3 + math.Sin(100*row[3])/4) }), nil, "", ""},
	} {
		m := model(t)
		other := c.other
		if other == nil {
			other = c.wrong
		}
		f := named(t, m, planted(t, m, first, 0, c.wrong), planted(t, m, second, 0, other))
		if f.Mistake.Kind != c.kind || !slices.Equal([]byte(f.What)[:min(len(c.says), len(f.What))], []byte(c.says)) || c.kind == "" && f.Named() {
			t.Errorf("%s: %s, %q, want %s: %q", c.name, f.Key(), f.What, c.kind, c.says)
		}
	}
}

// A norm whose scale is that of another token, by a rule, is named; a scale of another token by no rule is not.
func TestScalesOfOtherTokensAreNamed(t *testing.T) {
	norm, w := plainNorm(), wave(16, 5)
	of := func(token func(i int) int) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = in[0][i] / math.Sqrt(meanSquare(in[0][16*token(i/16):], 16, 16)+0.01) * w[i%16]
			}
		}
	}
	another := of(func(i int) int { return []int{0, 3, 1, 1, 6, 5, 2, 7}[i] })
	for _, c := range []rowPlant{
		{"value.of-block-index(of=step:rms_norm.rsqrt,n=4,m=1,axis=tokens)", norm, of(func(i int) int { return i / 4 * 4 }), another},
		{"value.of-block-index(of=step:rms_norm.rsqrt,n=3,m=1,axis=tokens)", norm, of(func(i int) int { return i / 3 * 3 }), another},
		{"value.of-block-index(of=step:rms_norm.rsqrt,n=3,m=1,k=2,axis=tokens)", norm, of(func(i int) int { return min(i/3*3+2, 7) }), another},
		{"value.of-index-before(of=step:rms_norm.rsqrt,m=1,axis=tokens)", norm, of(func(i int) int { return max(i-1, 0) }), another},
		{"value.of-index-after(of=step:rms_norm.rsqrt,m=1,axis=tokens)", norm, of(func(i int) int { return min(i+1, 7) }), another},
		{"value.of-one-index(of=step:rms_norm.rsqrt,n=3,m=1,axis=tokens)", norm, of(func(int) int { return 3 }), another},
	} {
		c.look(t)
	}
}
