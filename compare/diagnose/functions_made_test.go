package diagnose_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// softmaxOfKeys is a softmax of scores of 2 heads and 16 queries; some keys of each query are masked.
func softmaxOfKeys(keys int) operation {
	x := each(wave(2*16*keys, 1), func(v float64) float64 { return 2 * v })
	for i := range x {
		if i%keys > i/keys%16+4 {
			x[i] = -1e9
		}
	}
	shape := []int{1, 2, 16, keys}
	return operation{"layers.0.self_attn.probs_f32", op.Softmax{}, "bhts", shape, []program.Value{{Shape: shape, Data: x}}, nil, nil}
}

// softmaxBy is a softmax by another exponential, which is given the row too.
func softmaxBy(keys int, exp func(d float64, row int) float64) func(in [][]float64, y []float64) {
	return func(in [][]float64, y []float64) {
		for at := 0; at < len(y); at += keys {
			top, sum := slices.Max(in[0][at:][:keys]), 0.0
			for i, x := range in[0][at:][:keys] {
				y[at+i] = exp(x-top, at/keys)
				sum += y[at+i]
			}
			for i := range keys {
				y[at+i] /= sum
			}
		}
	}
}

// byPowersOf2 is an exponential by a whole power of 2 and a function of the rest.
func byPowersOf2(whole, of func(x float64) float64) func(d float64, row int) float64 {
	return func(d float64, _ int) float64 {
		x := d * math.Log2E
		k := whole(x)
		return math.Exp2(k) * of(x-k)
	}
}

// An exponential of a softmax that a port approximates is named. The right one, another scale or base, and what depends on more than the difference are none.
func TestExponentialsInPlainLoopsAreNamed(t *testing.T) {
	const name = "function.near-exponential"
	lines := byPowersOf2(math.Floor, func(x float64) float64 { return 1 + x })
	for _, c := range []struct {
		name string
		exp  func(d float64, row int) float64
		key  string // the beginning of the key; empty for no such name
	}{
		{"cut toward zero", byPowersOf2(math.Trunc, func(x float64) float64 { return 1 + x*(0.65617+0.34383*x) }), name + "(place=softmax.exp,by=step:softmax.difference"},
		{"lines between powers of 2", lines, name + "(place=softmax.exp,by=step:softmax.difference"},
		{"lines between powers of 2, moved", byPowersOf2(func(x float64) float64 { return math.Floor(x - 0.0436) }, func(x float64) float64 { return 1 + x - 0.0436 }), name},
		{"a power of 256", func(d float64, _ int) float64 { return math.Pow(max(0, 1+d/256), 256) }, name},
		{"lines, limited from below", func(d float64, _ int) float64 { return lines(max(d, -87), 0) }, "function.near-exponential-above-0(place=softmax.exp,of=number:"},
		{"lines, limited from below by number and row", func(d float64, row int) float64 { return lines(max(d, -87+float64(row)/100), 0) }, ""},
		{"right, limited from below", func(d float64, _ int) float64 { return math.Exp(max(d, -87)) }, ""},
		{"right", func(d float64, _ int) float64 { return math.Exp(d) }, ""},
		{"another scale", func(d float64, _ int) float64 { return math.Exp(0.917 * d) }, "factor."},
		{"another base", func(d float64, _ int) float64 { return math.Exp2(d) }, "softmax.base(place=softmax.quotient,by=number:0.693147,x=2)"},
		{"a scale for each row", func(d float64, row int) float64 { return math.Exp(d * (1 + math.Sin(float64(row))/20)) }, ""},
		{"noise", func(d float64, _ int) float64 { return math.Exp(d) * (1 + math.Sin(1e4*d)/50) }, ""},
		{"a table", func(d float64, _ int) float64 { return math.Exp(math.Round(8*d) / 8) }, ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 16
		f := named(t, m, softmaxOfKeys(20).made(t, m, softmaxBy(20, c.exp)))
		if key := f.Key(); c.key != "" && !strings.HasPrefix(key, c.key) || c.key == "" && strings.HasPrefix(key, name) {
			t.Errorf("%s: %s %q %v", c.name, key, f.What, f.Description)
		}
	}
}

// A softmax in two parts, the first one larger, that is merged without the maxima of its parts is named; other parts are not called so.
func TestPartsOfKeysInPlainLoopsAreNamed(t *testing.T) {
	merged := func(ends []int) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for at := 0; at < len(y); at += 13 {
				row, from, sum := in[0][at:][:13], 0, 0.0
				for _, end := range append(slices.Clone(ends), 13) {
					top := slices.Max(row[from:end])
					for ; from < end; from++ {
						y[at+from] = math.Exp(row[from] - top)
						sum += y[at+from]
					}
				}
				for i := range row {
					y[at+i] /= sum
				}
			}
		}
	}
	for _, c := range []struct {
		ends []int
		key  string
	}{
		{[]int{7}, "softmax.parts-own-maximum(place=softmax.quotient,k=2)"},
		{[]int{6}, "softmax.parts-own-maximum(place=softmax.quotient,n=2)"},
		{[]int{8}, "softmax.parts-own-maximum(place=softmax.quotient,m=8)"},
		{[]int{4, 8, 12}, "softmax.parts-own-maximum(place=softmax.quotient,m=4)"}, // not 4 parts
		{[]int{9}, ""},
	} {
		m := model(t)
		m.Passes[0].Tokens = 16
		if f := named(t, m, softmaxOfKeys(13).made(t, m, merged(c.ends))); f.Key() != c.key {
			t.Errorf("parts before %d: %s, %q", c.ends, f.Key(), f.What)
		}
	}
}
