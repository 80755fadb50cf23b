package compare_test

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// arith is a definite arithmetic of an engine: where it rounds, and by which of several equal formulas it computes. Numbers
// are float64s that hold what the engine has: each step of a formula is taken in float64 and then rounded to float32, which
// for + − × ÷ √ of float32 numbers is float32's own result, 53 bits being more than twice 24 and two.
type arith struct {
	engine // the dtype, the order of sums, the library

	sites  []string // steps after which it rounds to the dtype: "kind.step", or "kind.*"
	double bool     // float64 inside: no step is rounded to float32
	exact  bool     // results are not rounded either: what is stored is narrower than what the next operation reads

	parts     int  // that sums of products and of means are split in; 0 or 1 for none
	wideParts bool // partial sums, which are rounded to the dtype, are added in float32; else in the dtype

	inverse  bool // a mean is the sum times 1/n rounded, and a division by a constant the product with its rounded inverse
	queries  bool // the scale of scores is that of the queries, rounded
	ratio    bool // a magnitude is changed by the rounded quotient of the two
	power    bool // x³ is one step
	cast     bool // numbers of a formula have the dtype
	uncast   bool // and what transformers casts to the dtype has not
	root     bool // the inverse of a root is rounded, and the root before it
	divides  bool // the GELU of erf divides by √2
	sigmoid  bool // SiLU is x times a sigmoid that is rounded
	absolute bool // and that is of |x|: 1 − 1/(1 + exp |x|) where x is positive
	table    bool // GELU is a table of float16: its argument and its value are rounded to it below 10
	fused    bool // a product that feeds an addition is not rounded before it

	other  *library // whose functions it has, in place of the engine's own; nil for none
	turner *turner  // how it makes rotary tables; nil for transformers' own way

	wide []string // entries whose results stay float32, by the end of their name
}

// strictSites are transformers' own rounding points inside operations.
var strictSites = []string{
	"rms_norm.after", "add_scale.sum", "altup_correct.coefficient", "altup_correct.product", "altup_init.product", "rescale.product",
	"altup_predict.mixed", "cutoff.product", "magnitude.square", "magnitude.mean", "rope.cos", "rope.sin", "scores.product",
	"softcap.quotient", "softcap.tanh",
}

// without are the sites that are not among others.
func sitesWithout(sites []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(sites), func(s string) bool { return slices.Contains(others, s) })
}

// rounds reports whether a step's result is rounded to the dtype.
func (a arith) rounds(kind, step string) bool {
	return slices.Contains(a.sites, kind+"."+step) || slices.Contains(a.sites, kind+".*")
}

// stored is the dtype of an entry's result.
func (a arith) stored(e *order.Entry) hooks.DType {
	for _, end := range a.wide {
		if strings.HasSuffix(e.Name, end) {
			return hooks.F32
		}
	}
	return e.DTypeOf(a.dtype)
}

// f finishes one elementary step.
func (a arith) f(x float64) float64 {
	if a.double {
		return x
	}
	return float64(float32(x))
}

// r rounds to the dtype.
func (a arith) r(x float64) float64 { return floats.Round(a.dtype, x) }

// number is a Python number in a formula.
func (a arith) number(x float64) float64 {
	if a.double {
		return x
	}
	return float64(float32(x))
}

// own is a constant of a formula, which some engines have in the dtype.
func (a arith) own(x float64) float64 {
	if a.cast {
		return a.r(float64(float32(x)))
	}
	return a.number(x)
}

// operand is a constant that the model has.
func (a arith) operand(k op.Const) float64 {
	if k.Cast && !a.uncast {
		return a.r(float64(float32(k.Value)))
	}
	return a.own(k.Value)
}

// fn is a function of a library, of the engine's own or of another one.
func (a arith) fn(f function, x float64) float64 {
	switch {
	case a.double:
		return f.of(x)
	case a.other != nil:
		return a.other.of(f.units, f.of, x)
	}
	return float64(a.function(f.of, float32(x)))
}

// function is one of a library, which may be off by some units of 2⁻²⁴ of its result: see docs/arithmetic.md.
type function struct {
	of    func(x float64) float64
	units float64
}

var (
	expOf  = function{math.Exp, 4}
	tanhOf = function{math.Tanh, 7}
	erfOf  = function{math.Erf, 3}
	cosOf  = function{math.Cos, 4}
	sinOf  = function{math.Sin, 4}
)

// total is Σ x·y in the engine's order; y may be nil for ones.
func (a arith) total(x, y []float64) float64 {
	if a.double {
		s := 0.0
		for i, v := range x {
			if y != nil {
				v = float64(v * y[i])
			}
			s += v
		}
		return s
	}
	if y == nil {
		return float64(a.dot(0, narrowed(x), nil))
	}
	return float64(a.dot(0, narrowed(x), narrowed(y)))
}

// split is total where an engine splits its sums: each part is rounded to the dtype, and so is what they add up to as it grows,
// unless it is kept in float32.
func (a arith) split(x, y []float64) float64 {
	if a.parts < 2 || len(x) < 2 {
		return a.total(x, y)
	}
	size, sum := (len(x)+a.parts-1)/a.parts, 0.0
	for from := 0; from < len(x); from += size {
		to := min(from+size, len(x))
		var part []float64
		if y != nil {
			part = y[from:to]
		}
		sum = a.f(sum + a.r(a.total(x[from:to], part)))
		if !a.wideParts {
			sum = a.r(sum)
		}
	}
	return sum
}

// calc is one operation that an engine computes.
type calc struct {
	arith
	op    op.Op
	in, w []dense
	shape []int
	slip  slip
}

// dense is a tensor, row-major.
type dense struct {
	shape []int
	data  []float64
}

func (d dense) last() int { return d.shape[len(d.shape)-1] }

// at hands out what the engine does to the result of a step of this operation.
func (c calc) at(step string) func(float64) float64 {
	rounds := c.rounds(c.op.Kind(), step)
	return func(x float64) float64 {
		if x = c.f(x); rounds {
			return c.r(x)
		}
		return x
	}
}

// each computes the result element by element.
func (c calc) each(f func(i int) float64) []float64 {
	n, _ := hooks.Elements(c.shape)
	y := make([]float64, n)
	for i := range y {
		y[i] = f(i)
	}
	return y
}

// map1 computes each element of the first input by itself.
func (c calc) map1(f func(x float64) float64) []float64 {
	return c.each(func(i int) float64 { return f(c.in[0].data[i]) })
}

// perRow computes each last axis of x by itself.
func perRow(x []float64, n int, f func(row []float64) []float64) []float64 {
	var y []float64
	for i := 0; i < len(x); i += n {
		y = append(y, f(x[i:i+n])...)
	}
	return y
}

// mean is Σ / n, or Σ times the rounded inverse of n.
func (c calc) mean(terms []float64, split bool) float64 {
	sum, n := 0.0, float64(len(terms)-c.slip.fewer)
	if split {
		sum = c.split(terms, nil)
	} else {
		sum = c.total(terms, nil)
	}
	if _, norm := c.op.(op.RMSNorm); c.inverse && !norm { // norms are one kernel
		return c.at("mean")(c.r(sum) * c.r(c.f(1/n)))
	}
	return c.at("mean")(sum / n)
}

// squares of a vector, each rounded where the engine does.
func (c calc) squares(x []float64) []float64 {
	square, y := c.at("square"), make([]float64, len(x))
	for i, v := range x {
		y[i] = square(v * v)
	}
	return y
}

// meanSquare is the mean of x². Where no square is rounded, a fused engine adds their products.
func (c calc) meanSquare(x []float64) float64 {
	if c.fused {
		return c.at("mean")(c.total(x, x) / float64(len(x)-c.slip.fewer))
	}
	return c.mean(c.squares(x), false)
}

// lowest is the lowest finite number of a dtype.
func lowest(d hooks.DType) float64 {
	switch d {
	case hooks.BF16:
		return -0x1.fep127
	case hooks.F16:
		return -65504
	}
	return -math.MaxFloat32
}
