package testengine

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Arithmetic is a definite arithmetic of an engine: where it rounds, and by which of several equal formulas it computes. Numbers
// are float64s that hold what the engine has: each step of a formula is taken in float64 and then rounded to float32, which
// for + − × ÷ √ of float32 numbers is float32's own result, 53 bits being more than twice 24 and two. It has a field for each way in
// which engines differ, since they are drawn together.
type Arithmetic struct {
	Kernels // the dtype, the order of sums, the library

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
	table    bool // GELU is a lookup table of float16: below 10, argument and value are rounded to float16
	fused    bool // a product that feeds an addition is not rounded before it

	other  *Library // the library of its functions; nil: the engine's own functions
	turner *Turner  // how it makes rotary tables; nil for transformers' own way

	wide []string // entries whose results stay float32, by the end of their name
}

// strictSites are transformers' own rounding points inside operations.
var strictSites = []string{
	"rms_norm.after", "add_scale.sum", "altup_correct.coefficient", "altup_correct.product", "altup_init.product", "rescale.product",
	"altup_predict.mixed", "cutoff.product", "magnitude.square", "magnitude.mean", "rope.cos", "rope.sin", "scores.product",
	"softcap.quotient", "softcap.tanh",
}

// sitesWithout are the sites that are not among others.
func sitesWithout(sites []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(sites), func(s string) bool { return slices.Contains(others, s) })
}

// With is an arithmetic that rounds after more steps.
func (a Arithmetic) With(sites ...string) Arithmetic {
	a.sites = append(slices.Clone(a.sites), sites...)
	return a
}

// rounds reports whether a step's result is rounded to the dtype.
func (a Arithmetic) rounds(kind, step string) bool {
	return slices.Contains(a.sites, kind+"."+step) || slices.Contains(a.sites, kind+".*")
}

// stored is the dtype of an entry's result.
func (a Arithmetic) stored(e *order.Entry) hooks.DType {
	for _, end := range a.wide {
		if strings.HasSuffix(e.Name, end) {
			return hooks.F32
		}
	}
	return e.DTypeOf(a.DType)
}

// f finishes one elementary step.
func (a Arithmetic) f(x float64) float64 {
	if a.double {
		return x
	}
	return float64(float32(x))
}

// r rounds to the dtype.
func (a Arithmetic) r(x float64) float64 { return floats.Round(a.DType, x) }

// number is a Python number in a formula.
func (a Arithmetic) number(x float64) float64 {
	if a.double {
		return x
	}
	return float64(float32(x))
}

// own is a constant of a formula, which some engines have in the dtype.
func (a Arithmetic) own(x float64) float64 {
	if a.cast {
		return a.r(float64(float32(x)))
	}
	return a.number(x)
}

// operand is a constant that the model has.
func (a Arithmetic) operand(k op.Const) float64 {
	if k.Cast && !a.uncast {
		return a.r(float64(float32(k.Value)))
	}
	return a.own(k.Value)
}

// fn evaluates a function in the engine's own library, or in other.
func (a Arithmetic) fn(f function, x float64) float64 {
	switch {
	case a.double:
		return f.of(x)
	case a.other != nil:
		return a.other.of(f.units, f.of, x)
	}
	return float64(a.Function(f.of, float32(x)))
}

// function is a library function with an error of at most units of 2⁻²⁴ of the result: see docs/results/functions.md.
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
func (a Arithmetic) total(x, y []float64) float64 {
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
		return float64(a.Dot(0, Narrowed(x), nil))
	}
	return float64(a.Dot(0, Narrowed(x), Narrowed(y)))
}

// split is total for an engine with split sums: each part is rounded to the dtype, and so is the running total of
// the parts, unless the engine keeps the total in float32.
func (a Arithmetic) split(x, y []float64) float64 {
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

// Call is one operation of the engine: one entry in one pass.
type Call struct {
	Arithmetic
	Entry *order.Entry
	Pass  int
	In, W []Tensor // the inputs and the weights
	Shape []int    // of the result
	op    op.Op    // the entry's, or a wrong one by mistake
	slip  slip
}

// Tensor is a tensor, row-major.
type Tensor struct {
	Shape []int
	Data  []float64
}

// Last is the length of the last axis.
func (d Tensor) Last() int { return d.Shape[len(d.Shape)-1] }

// Row is the k-th row of a matrix.
func (d Tensor) Row(k int) []float64 { return d.Data[k*d.Last():][:d.Last()] }

// rows is how many rows a matrix has.
func (d Tensor) rows() int { return len(d.Data) / d.Last() }

// at hands out what the engine does to the result of a step of this operation.
func (c Call) at(step string) func(float64) float64 {
	rounds := c.rounds(c.op.Kind(), step)
	return func(x float64) float64 {
		if x = c.f(x); rounds {
			return c.r(x)
		}
		return x
	}
}

// each computes the result element by element.
func (c Call) each(f func(i int) float64) []float64 {
	n, _ := hooks.Elements(c.Shape)
	y := make([]float64, n)
	for i := range y {
		y[i] = f(i)
	}
	return y
}

// map1 applies f to each element of the first input.
func (c Call) map1(f func(x float64) float64) []float64 {
	return c.each(func(i int) float64 { return f(c.In[0].Data[i]) })
}

// perRow applies f to each row (the last axis, of length n) of x.
func perRow(x []float64, n int, f func(row []float64) []float64) []float64 {
	var y []float64
	for i := 0; i < len(x); i += n {
		y = append(y, f(x[i:i+n])...)
	}
	return y
}

// mean is Σ / n, or Σ times the rounded inverse of n.
func (c Call) mean(terms []float64, split bool) float64 {
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
func (c Call) squares(x []float64) []float64 {
	square, y := c.at("square"), make([]float64, len(x))
	for i, v := range x {
		y[i] = square(v * v)
	}
	return y
}

// meanSquare is the mean of x². Where no square is rounded, a fused engine adds their products.
func (c Call) meanSquare(x []float64) float64 {
	if c.fused {
		return c.at("mean")(c.total(x, x) / float64(len(x)-c.slip.fewer))
	}
	return c.mean(c.squares(x), false)
}

// Lowest is the lowest finite number of a dtype.
func Lowest(d hooks.DType) float64 {
	switch d {
	case hooks.BF16:
		return -0x1.fep127
	case hooks.F16:
		return -65504
	}
	return -math.MaxFloat32
}

// Narrowed are numbers in float32.
func Narrowed(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}
