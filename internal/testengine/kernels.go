package testengine

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Kernels are the sums and functions of a healthy port: float32 arithmetic as programs have it, written without order/op, whose bounds
// it is there to test. Sums are taken in the port's own order, and rounded to the dtype at the R points of the reference and nowhere
// else.
type Kernels struct {
	Adder
	DType hooks.DType
	// Choices that engines make and that no reference fixes.
	BiasFirst  bool // accumulators start at the bias
	Reciprocal bool // divides by multiplying with a rounded reciprocal
	library    bool // exp and tanh are off by an ulp here and there
	flush      bool // and give zero in place of numbers below the normal ones
}

// Adder is an order in which products are added.
type Adder struct {
	Block    int  // how many neighbouring terms are added in sequence before the sums are; 1 for none
	Lanes    int  // sums side by side, term k going to sum k mod lanes; 1 for none
	Pairwise bool // halves, down to blocks
	Reversed bool
	Fused    bool // the product is not rounded before it is added
	Tree     bool // lanes are added in halves, not one after the other
}

// String names the order by what it is.
func (a Adder) String() string {
	name := "sequential"
	switch {
	case a.Pairwise:
		name = fmt.Sprintf("pairwise to blocks of %d", a.Block)
	case a.Lanes > 1:
		name = fmt.Sprintf("%d lanes", a.Lanes)
	case a.Block > 1:
		name = fmt.Sprintf("blocks of %d", a.Block)
	case a.Reversed:
		name = "reversed"
	}
	if a.Fused {
		name += ", fused"
	}
	return name
}

// drawAdder takes an order at random: sequential, reversed, pairwise, in blocks or in lanes of 8 to 64, fused or not.
func drawAdder(rng *rand.Rand) Adder {
	a := Adder{Block: 1, Lanes: 1, Fused: rng.IntN(2) == 0, Tree: rng.IntN(2) == 0}
	wide := 8 << rng.IntN(4)
	switch rng.IntN(5) {
	case 1:
		a.Reversed = true
	case 2:
		a.Pairwise = true
		a.Block = []int{1, 8, 128}[rng.IntN(3)]
	case 3:
		a.Block = wide
	case 4:
		a.Lanes = wide
	}
	return a
}

// DrawKernels takes an order of sums and a library at random.
func DrawKernels(rng *rand.Rand, d hooks.DType) Kernels {
	return Kernels{drawAdder(rng), d, rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0}
}

// Round is R: to the dtype.
func (g Kernels) Round(x float32) float32 {
	switch g.DType {
	case hooks.BF16:
		return floats.RoundBF16(x)
	case hooks.F16:
		return floats.RoundF16(x)
	}
	return x
}

// Rounded rounds to the engine's dtype, in place.
func (g Kernels) Rounded(x []float32) []float32 {
	for i, v := range x {
		x[i] = g.Round(v)
	}
	return x
}

// Dot is Σ x·y from first on; y may be nil for ones.
func (a Adder) Dot(first float32, x, y []float32) float32 {
	switch {
	case a.Pairwise:
		return first + a.halves(x, y)
	case a.Lanes > 1:
		return first + a.side(x, y)
	}
	total := first
	for i := 0; i < len(x); i += a.Block {
		end := min(i+a.Block, len(x))
		if a.Block == 1 {
			k := i
			if a.Reversed {
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
func (a Adder) term(s float32, x, y []float32, k int) float32 {
	f := float32(1)
	if y != nil {
		f = y[k]
	}
	if a.Fused { // the product of two float32s is exact in float64
		return float32(float64(s) + float64(x[k])*float64(f))
	}
	return s + float32(x[k]*f)
}

func (a Adder) run(s float32, x, y []float32, from, to int) float32 {
	for k := from; k < to; k++ {
		s = a.term(s, x, y, k)
	}
	return s
}

func (a Adder) halves(x, y []float32) float32 {
	if len(x) <= a.Block {
		return a.run(0, x, y, 0, len(x))
	}
	m := len(x) / 2
	if y == nil {
		return a.halves(x[:m], nil) + a.halves(x[m:], nil)
	}
	return a.halves(x[:m], y[:m]) + a.halves(x[m:], y[m:])
}

func (a Adder) side(x, y []float32) float32 {
	sums := make([]float32, a.Lanes)
	for k := range x {
		sums[k%a.Lanes] = a.term(sums[k%a.Lanes], x, y, k)
	}
	if a.Tree {
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

// Function is one of a float32 library: right to an ulp, or zero for what is below the normal numbers.
func (g Kernels) Function(f func(float64) float64, x float32) float32 {
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

// Divide is x / y, or x times a rounded reciprocal.
func (g Kernels) Divide(x, y float32) float32 {
	if g.Reciprocal {
		return x * (1 / y)
	}
	return x / y
}

// Linear is W·x + b, W of rows as long as x; b may be nil.
func (g Kernels) Linear(x, w, b []float32) []float32 {
	n := len(x)
	y := make([]float32, len(w)/n)
	for o := range y {
		row := w[o*n:][:n]
		switch {
		case b == nil:
			y[o] = g.Dot(0, x, row)
		case g.BiasFirst:
			y[o] = g.Dot(b[o], x, row)
		default:
			y[o] = g.Dot(0, x, row) + b[o]
		}
	}
	return y
}

// Norm is x / √(mean x² + eps), then the gain: "plain", "none", "oneplus" or "after".
func (g Kernels) Norm(x, w []float32, eps float32, gain string) []float32 {
	ms := g.Divide(g.Dot(0, x, x), float32(len(x)))
	root := float32(math.Sqrt(float64(ms + eps)))
	inv := 1 / root
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = v * inv
		if g.Reciprocal {
			y[i] = v / root
		}
		switch gain {
		case "plain":
			y[i] *= w[i]
		case "oneplus":
			y[i] *= 1 + w[i]
		case "after":
			y[i] = g.Round(y[i]) * w[i]
		}
	}
	return y
}

// Softmax is that of one row.
func (g Kernels) Softmax(x []float32) []float32 {
	top := float32(math.Inf(-1))
	for _, v := range x {
		top = max(top, v)
	}
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = g.Function(math.Exp, v-top)
	}
	sum := g.Dot(0, y, nil)
	for i := range y {
		y[i] = g.Divide(y[i], sum)
	}
	return y
}

// Mean is that of one row.
func (g Kernels) Mean(x []float32) float32 { return g.Divide(g.Dot(0, x, nil), float32(len(x))) }

// Deviation is the standard deviation of one row, in two passes.
func (g Kernels) Deviation(x []float32) float32 {
	mean := g.Mean(x)
	d := make([]float32, len(x))
	for i, v := range x {
		d[i] = v - mean
	}
	return float32(math.Sqrt(float64(g.Divide(g.Dot(0, d, d), float32(len(x))))))
}

// Magnitude is the root of the mean square of one row.
func (g Kernels) Magnitude(x []float32) float32 {
	squares := make([]float32, len(x))
	for i, v := range x {
		squares[i] = g.Round(v * v)
	}
	return float32(math.Sqrt(float64(g.Round(g.Mean(squares)))))
}

// GELUTanh is the GELU of tanh.
func (g Kernels) GELUTanh(x float32) float32 {
	k, cubic := float32(math.Sqrt(2/math.Pi)), float32(0.044715)
	inner := k * (x + float32(cubic*(x*x*x)))
	return 0.5 * x * (1 + g.Function(math.Tanh, inner))
}

// GELU is the one of erf.
func (g Kernels) GELU(x float32) float32 {
	return 0.5 * x * (1 + g.Function(math.Erf, x*float32(math.Sqrt2/2)))
}

// SiLU is x times its sigmoid.
func (g Kernels) SiLU(x float32) float32 {
	return x / (1 + g.Function(math.Exp, -x))
}

// Softcap holds x below a limit by a tanh.
func (g Kernels) Softcap(x, limit float32) float32 {
	return g.Round(g.Function(math.Tanh, g.Round(x/limit))) * limit
}
