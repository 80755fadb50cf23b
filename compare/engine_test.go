package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// engine is a healthy port: float32 arithmetic as programs have it, written without order/op, whose bounds it is there to
// test. Sums are taken in its own order, and rounded to the dtype at the R points of the reference and nowhere else.
type engine struct {
	adder
	dtype hooks.DType
	// Choices that engines make and that no reference fixes.
	biasFirst  bool // accumulators start at the bias
	reciprocal bool // divides by multiplying with a rounded reciprocal
	library    bool // exp and tanh are off by an ulp here and there
	flush      bool // and give zero in place of numbers below the normal ones
}

// adder is an order in which products are added.
type adder struct {
	block    int  // terms next to each other that are added first, one after the other; 1 for none
	lanes    int  // sums side by side, term k going to sum k mod lanes; 1 for none
	pairwise bool // halves, down to blocks
	reversed bool
	fused    bool // the product is not rounded before it is added
	tree     bool // lanes are added in halves, not one after the other
}

// String names the order by what it is.
func (a adder) String() string {
	name := "sequential"
	switch {
	case a.pairwise:
		name = fmt.Sprintf("pairwise to blocks of %d", a.block)
	case a.lanes > 1:
		name = fmt.Sprintf("%d lanes", a.lanes)
	case a.block > 1:
		name = fmt.Sprintf("blocks of %d", a.block)
	case a.reversed:
		name = "reversed"
	}
	if a.fused {
		name += ", fused"
	}
	return name
}

// drawAdder takes an order at random: sequential, reversed, pairwise, in blocks or in lanes of 8 to 64, fused or not.
func drawAdder(rng *rand.Rand) adder {
	a := adder{block: 1, lanes: 1, fused: rng.IntN(2) == 0, tree: rng.IntN(2) == 0}
	wide := 8 << rng.IntN(4)
	switch rng.IntN(5) {
	case 1:
		a.reversed = true
	case 2:
		a.pairwise = true
		a.block = []int{1, 8, 128}[rng.IntN(3)]
	case 3:
		a.block = wide
	case 4:
		a.lanes = wide
	}
	return a
}

func drawEngine(rng *rand.Rand, d hooks.DType) engine {
	return engine{drawAdder(rng), d, rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0}
}

// round is R.
func (g engine) round(x float32) float32 {
	switch g.dtype {
	case hooks.BF16:
		return floats.RoundBF16(x)
	case hooks.F16:
		return floats.RoundF16(x)
	}
	return x
}

// dot is Σ x·y from first on; y may be nil for ones.
func (a adder) dot(first float32, x, y []float32) float32 {
	switch {
	case a.pairwise:
		return first + a.halves(x, y)
	case a.lanes > 1:
		return first + a.side(x, y)
	}
	total := first
	for i := 0; i < len(x); i += a.block {
		end := min(i+a.block, len(x))
		if a.block == 1 {
			k := i
			if a.reversed {
				k = len(x) - 1 - i
			}
			total = a.term(total, x, y, k)
			continue
		}
		total += a.run(0, x, y, i, end)
	}
	return total
}

// term adds product k. Explicit conversions keep a compiler from fusing what is not to be fused.
func (a adder) term(s float32, x, y []float32, k int) float32 {
	f := float32(1)
	if y != nil {
		f = y[k]
	}
	if a.fused { // the product of two float32s is exact in float64
		return float32(float64(s) + float64(x[k])*float64(f))
	}
	return s + float32(x[k]*f)
}

func (a adder) run(s float32, x, y []float32, from, to int) float32 {
	for k := from; k < to; k++ {
		s = a.term(s, x, y, k)
	}
	return s
}

func (a adder) halves(x, y []float32) float32 {
	if len(x) <= a.block {
		return a.run(0, x, y, 0, len(x))
	}
	m := len(x) / 2
	if y == nil {
		return a.halves(x[:m], nil) + a.halves(x[m:], nil)
	}
	return a.halves(x[:m], y[:m]) + a.halves(x[m:], y[m:])
}

func (a adder) side(x, y []float32) float32 {
	sums := make([]float32, a.lanes)
	for k := range x {
		sums[k%a.lanes] = a.term(sums[k%a.lanes], x, y, k)
	}
	if a.tree {
		for n := len(sums) / 2; n > 0; n /= 2 {
			for i := range n {
				sums[i] += sums[i+n]
			}
		}
		return sums[0]
	}
	total := sums[0]
	for _, s := range sums[1:] {
		total += s
	}
	return total
}

// normal is the least normal float32.
const normal = 0x1p-126

// function is one of a float32 library: right to an ulp, or zero for what is below the normal numbers.
func (g engine) function(f func(float64) float64, x float32) float32 {
	y := float32(f(float64(x)))
	size := math.Abs(float64(y))
	if g.flush && size < normal {
		return 0
	}
	if g.library && size >= normal && size < math.MaxFloat32 {
		switch math.Float32bits(x) * 2654435761 >> 30 { // some function of x: a library gives the same twice
		case 0:
			y = math.Nextafter32(y, float32(math.Inf(1)))
		case 1:
			y = math.Nextafter32(y, float32(math.Inf(-1)))
		}
	}
	return y
}

func (g engine) divide(x, y float32) float32 {
	if g.reciprocal {
		return x * (1 / y)
	}
	return x / y
}

// linear is W·x + b, W of rows as long as x; b may be nil.
func (g engine) linear(x, w, b []float32) []float32 {
	n := len(x)
	y := make([]float32, len(w)/n)
	for o := range y {
		row := w[o*n:][:n]
		switch {
		case b == nil:
			y[o] = g.dot(0, x, row)
		case g.biasFirst:
			y[o] = g.dot(b[o], x, row)
		default:
			y[o] = g.dot(0, x, row) + b[o]
		}
	}
	return y
}

// norm is x / √(mean x² + eps), then the gain: "plain", "none", "oneplus" or "after".
func (g engine) norm(x, w []float32, eps float32, gain string) []float32 {
	ms := g.divide(g.dot(0, x, x), float32(len(x)))
	root := float32(math.Sqrt(float64(ms + eps)))
	inv := 1 / root
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = v * inv
		if g.reciprocal {
			y[i] = v / root
		}
		switch gain {
		case "plain":
			y[i] *= w[i]
		case "oneplus":
			y[i] *= 1 + w[i]
		case "after":
			y[i] = g.round(y[i]) * w[i]
		}
	}
	return y
}

func (g engine) softmax(x []float32) []float32 {
	top := float32(math.Inf(-1))
	for _, v := range x {
		top = max(top, v)
	}
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = g.function(math.Exp, v-top)
	}
	sum := g.dot(0, y, nil)
	for i := range y {
		y[i] = g.divide(y[i], sum)
	}
	return y
}

func (g engine) mean(x []float32) float32 { return g.divide(g.dot(0, x, nil), float32(len(x))) }

// deviation takes two passes.
func (g engine) deviation(x []float32) float32 {
	mean := g.mean(x)
	d := make([]float32, len(x))
	for i, v := range x {
		d[i] = v - mean
	}
	return float32(math.Sqrt(float64(g.divide(g.dot(0, d, d), float32(len(x))))))
}

func (g engine) magnitude(x []float32) float32 {
	squares := make([]float32, len(x))
	for i, v := range x {
		squares[i] = g.round(v * v)
	}
	return float32(math.Sqrt(float64(g.round(g.mean(squares)))))
}

func (g engine) geluTanh(x float32) float32 {
	k, cubic := float32(math.Sqrt(2/math.Pi)), float32(0.044715)
	inner := k * (x + float32(cubic*(x*x*x)))
	return 0.5 * x * (1 + g.function(math.Tanh, inner))
}

func (g engine) silu(x float32) float32 {
	return x / (1 + g.function(math.Exp, -x))
}

func (g engine) softcap(x, limit float32) float32 {
	return g.round(g.function(math.Tanh, g.round(x/limit))) * limit
}
