package recorded

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// formulas are the operations, by torch's names without the marks of variants. The values follow torch's
// documentation, and the roundings follow torch's CPU kernels (aten/src/ATen/native/cpu): operands become float32,
// intermediate results are float32, and only the final result is rounded to its dtype, unless a comment says
// otherwise.
var formulas map[string]func(m *maker) program.Var

func init() {
	formulas = map[string]func(m *maker) program.Var{
		"to": move, "zeros_like": func(m *maker) program.Var { return m.b.Expand(m.b.Literal(0), m.s.shape) },
		"ones_like": func(m *maker) program.Var { return m.b.Expand(m.b.Literal(1), m.s.shape) },
		"fill":      func(m *maker) program.Var { return m.b.Expand(m.cast(0), m.s.shape) },
		"neg":       func(m *maker) program.Var { return m.b.Neg(m.operand(0)) },
		"abs":       func(m *maker) program.Var { return m.b.Max(m.operand(0), m.b.Neg(m.operand(0))) },
		"relu": func(m *maker) program.Var {
			return m.b.Max(m.operand(0), m.b.Literal(0))
		},
		"maximum": func(m *maker) program.Var { return m.b.Max(m.cast(0), m.cast(1)) },
		"minimum": func(m *maker) program.Var { return smaller(m.b, m.cast(0), m.cast(1)) },
		"clamp":   clamp, "where": where, "masked_fill": maskedFill,
		"cat": cat, "stack": stack, "repeat": repeat, "pad": pad, "write": write, "flip": flip,
		"embedding": embedding, "gather": gather, "index_select": indexSelect, "index": index,
		"topk": ranks, "sort": ranks, "max": ranks, "min": ranks, "argmax": ranks, "argmin": ranks,
		"scatter": scatter, "index_copy": indexed, "index_put": indexPut, "scatter_add": scatter, "index_add": indexed,

		"eq": compared, "ne": compared, "lt": compared, "le": compared, "gt": compared, "ge": compared,
		"bitwise_not": not, "logical_not": not, "bitwise_and": both, "logical_and": both, "bitwise_or": both, "logical_or": both,

		"add": sum, "sub": sum, "rsub": sum,
		"mul": func(m *maker) program.Var { return m.b.Mul("product", m.operand(0), m.operand(1)) },
		"div": divide, "floor_divide": divide, "floor": func(m *maker) program.Var { return m.b.Floor(m.operand(0)) },
		"reciprocal": func(m *maker) program.Var {
			return m.b.Div("quotient", m.b.Literal(1), m.operand(0))
		},

		"bits": bits, "polar": polar, "complex_mul": complexProduct,

		"pow": power, "softplus": softplus, "gelu": gelu, "silu": silu,
		"square": func(m *maker) program.Var { return m.b.Mul("square", m.operand(0), m.operand(0)) },
		"sqrt":   function((*program.Builder).Sqrt), "rsqrt": function((*program.Builder).Rsqrt),
		"exp": function((*program.Builder).Exp), "expm1": function((*program.Builder).Expm1),
		"log": function((*program.Builder).Log), "log1p": function((*program.Builder).Log1p),
		"tanh": function((*program.Builder).Tanh), "erf": function((*program.Builder).Erf),
		"cos": function((*program.Builder).Cos), "sin": function((*program.Builder).Sin),
		"sigmoid": sigmoid, "log_sigmoid": logSigmoid, "log_sigmoid_forward": logSigmoid,

		"sum": total, "mean": total, "cumsum": cumulative, "vector_norm": length, "amax": outermost, "amin": outermost, "var": deviation, "std": deviation,
		"softmax": softmax, "log_softmax": logSoftmax, "logsumexp": logSumExp, "native_layer_norm": layerNorm,

		"mm": product, "bmm": batched, "addmm": product, "baddbmm": batched, "mv": product, "convolution": convolution,
		"linalg_solve_triangular": solve, "_scaled_dot_product_flash_attention_for_cpu": attention,
	}
}

// move is a copy, or a conversion: the rounding is the result's. A flag is whether a number is not 0.
func move(m *maker) program.Var {
	x := m.operand(0)
	switch from := m.s.operands[0].dtype; {
	case m.s.operands[0].source == fromNumber, m.s.dtype.Float(), from == m.s.dtype:
	case m.s.dtype == hooks.Bool:
		x = m.b.Choose(x, m.b.Literal(1), m.b.Literal(0))
	case from.Float():
		return m.unknown("a whole number made of a number with a fraction")
	}
	return m.b.Expand(x, m.s.shape)
}

// function is one function of the first operand, computed in float32.
func function(f func(b *program.Builder, name string, x program.Var) program.Var) func(m *maker) program.Var {
	return func(m *maker) program.Var { return f(m.b, m.o.Name, m.operand(0)) }
}

func smaller(b *program.Builder, x, y program.Var) program.Var {
	return b.Neg(b.Max(b.Neg(x), b.Neg(y)))
}

// sum is x + α·y, x − α·y, or y − α·x. The product with α is not rounded beyond float32.
func sum(m *maker) program.Var {
	m.only("alpha")
	x, y := m.operand(0), m.operand(1)
	if m.o.Name == "rsub" {
		x, y = y, x
	}
	if alpha := m.real("alpha", 1); alpha != 1 {
		y = m.b.Mul("scaled", y, m.b.Scalar("alpha", alpha))
	}
	if m.o.Name == "add" {
		return m.b.Add("sum", x, y)
	}
	return m.b.Sub("difference", x, y)
}

// divide is x / y; of whole numbers its floor, or the next whole number towards 0.
func divide(m *maker) program.Var {
	m.only("rounding_mode")
	x, y := m.operand(0), m.operand(1)
	q := m.b.Div("quotient", x, y)
	mode := m.text("rounding_mode", "")
	if m.o.Name == "floor_divide" {
		mode = "floor"
	}
	switch {
	case mode == "":
		return q
	case m.s.dtype.Float():
		return m.unknown("the whole part of a number with a fraction")
	case mode == "floor":
		return m.b.Floor(q)
	case mode == "trunc": // floor(q) where q is not below 0, −floor(−q) elsewhere
		zero := m.b.Literal(0)
		return m.b.Sub("whole", m.b.Floor(m.b.Max(q, zero)), m.b.Floor(m.b.Max(m.b.Neg(q), zero)))
	}
	return m.unknown("its setting rounding_mode")
}

func clamp(m *maker) program.Var {
	m.only("min", "max")
	x := m.operand(0)
	if low := m.real("min", math.Inf(-1)); !math.IsInf(low, -1) {
		x = m.b.Max(x, m.number("min", low))
	}
	if high := m.real("max", math.Inf(1)); !math.IsInf(high, 1) {
		x = smaller(m.b, x, m.number("max", high))
	}
	return x
}

func where(m *maker) program.Var { return m.b.Choose(m.operand(0), m.cast(1), m.cast(2)) }

func maskedFill(m *maker) program.Var { return m.b.Choose(m.operand(1), m.cast(2), m.operand(0)) }

// power is x to a number. Small powers are products and roots; x³ in 16 bits is R(R(x²)·x).
func power(m *maker) program.Var {
	if len(m.s.operands) != 2 || m.s.operands[1].source != fromNumber {
		return m.b.Pow("power", m.operand(0), m.operand(1))
	}
	x := m.operand(0)
	switch m.s.operands[1].number {
	case 2:
		return m.b.Mul("square", x, x)
	case 3:
		return m.b.Mul("cube", m.narrow(m.b.Mul("square", x, x)), x)
	case 0.5:
		return m.b.Sqrt("root", x)
	case -0.5:
		return m.b.Rsqrt("rsqrt", x)
	case -1:
		return m.b.Div("quotient", m.b.Literal(1), x)
	}
	return m.b.Pow("power", x, m.operand(1))
}

// sigmoid is 1 / (1 + e⁻ˣ).
func sigmoid(m *maker) program.Var {
	return m.b.Div("quotient", m.b.Literal(1), m.b.Add("sum", m.b.Literal(1), m.b.Exp("exp", m.b.Neg(m.operand(0)))))
}

// softplus is log(1 + eˣ). torch returns x for x above the threshold, where both are equal in float32. The formula is
// max(x, 0) + log(1 + e^−|x|), which does not overflow.
func softplus(m *maker) program.Var {
	m.only("beta", "threshold")
	if m.real("beta", 1) != 1 || m.real("threshold", 20) < 20 {
		return m.unknown("its beta and threshold")
	}
	return softplusOf(m.b, m.operand(0))
}

// softplusOf is log(1 + eˣ), see [softplus].
func softplusOf(b *program.Builder, x program.Var) program.Var {
	small := b.Neg(b.Max(x, b.Neg(x)))
	return b.Add("sum", b.Max(x, b.Literal(0)), b.Log1p("log", b.Exp("exp", small)))
}

// logSigmoid is −log(1 + e⁻ˣ).
func logSigmoid(m *maker) program.Var {
	if m.o.Out != 0 {
		return m.unknown("its second result")
	}
	return m.b.Neg(softplusOf(m.b, m.b.Neg(m.operand(0))))
}

func gelu(m *maker) program.Var {
	m.only("approximate")
	switch m.text("approximate", "none") {
	case "none":
		return op.GELU{}.Steps(m.b, []program.Var{m.operand(0)}, nil)
	case "tanh":
		return op.GELUTanh{}.Steps(m.b, []program.Var{m.operand(0)}, nil)
	}
	return m.unknown("its approximation")
}

func silu(m *maker) program.Var { return op.SiLU{}.Steps(m.b, []program.Var{m.operand(0)}, nil) }

// rowsOver is a tensor with some axes put last and made one, and the shape that a sum over these axes has.
func rowsOver(b *program.Builder, v program.Var, axes []int) (rows program.Var, kept []int) {
	shape := v.Shape
	gone := make([]bool, len(shape))
	if len(axes) == 0 {
		for a := range shape {
			axes = append(axes, a)
		}
	}
	n := 1
	for _, a := range axes {
		a = axisOf(b, a, shape)
		if !gone[a] {
			n *= shape[a]
		}
		gone[a] = true
	}
	var first, last []int
	for a := range shape {
		if gone[a] {
			last = append(last, a)
		} else {
			first = append(first, a)
			kept = append(kept, shape[a])
		}
	}
	if len(last) == 0 { // an axis that is not there: the program is an error
		return v, kept
	}
	if len(last) > 1 {
		v = b.Plain(b.Permute(v, slices.Concat(first, last)...))
		return b.Reshape(v, slices.Concat(kept, []int{n})...), kept
	}
	return b.Permute(v, slices.Concat(first, last)...), kept
}

// total is the sum or the mean over some axes, all where none is named; it is accumulated in float32.
func total(m *maker) program.Var {
	m.only("dim", "keepdim", "dtype")
	axes, _ := m.integers("dim")
	rows, _ := rowsOver(m.b, m.operand(0), axes)
	if m.o.Name == "mean" {
		return m.b.Mean("mean", rows)
	}
	return m.b.Sum("sum", rows)
}

// cumulative are the sums of the first elements along an axis: products with the ones of a triangle.
func cumulative(m *maker) program.Var {
	m.only("dim")
	v := m.operand(0)
	a := axisOf(m.b, m.integer("dim", 0), v.Shape)
	n := v.Shape[a]
	if n > maxTriangle {
		return m.unknown("%d elements of it", n)
	}
	ones := make([]float64, n*n)
	for i := range n {
		for k := range i + 1 {
			ones[i*n+k] = 1
		}
	}
	moved, back := lastAxis(len(v.Shape), a)
	rows := m.b.Permute(v, moved...)
	flat := m.b.Reshape(m.b.Plain(rows), -1, n)
	sums := m.b.Dot("sum", "rk,ik->ri", flat, m.b.Constant("", ones, []int{n, n}))
	return m.b.Permute(m.b.Reshape(sums, rows.Shape...), back...)
}

// maxTriangle bounds a triangle of ones, which is of maxOwn numbers at most.
const maxTriangle = 2048

// lastAxis returns the order of axes that moves axis a to the end, and the inverse order.
func lastAxis(rank, a int) (there, back []int) {
	for k := range rank {
		if k != a {
			there = append(there, k)
		}
	}
	there = append(there, a)
	back = make([]int, rank)
	for k, from := range there {
		back[from] = k
	}
	return there, back
}

// length is the root of the sum of squares.
func length(m *maker) program.Var {
	m.only("ord", "dim", "keepdim", "dtype")
	if m.real("ord", 2) != 2 {
		return m.unknown("its order")
	}
	axes, _ := m.integers("dim")
	rows, _ := rowsOver(m.b, m.operand(0), axes)
	return m.b.Sqrt("root", m.b.Sum("sum", m.b.Mul("square", rows, rows)))
}

// deviation is the variance, Σ (x − mean)² / (n − correction), or its root; torch updates both sums as it goes (Welford).
func deviation(m *maker) program.Var {
	m.only("dim", "keepdim", "correction", "unbiased")
	axes, _ := m.integers("dim")
	rows, _ := rowsOver(m.b, m.operand(0), axes)
	n, correction := float64(rows.Last()), m.real("correction", 1)
	if unbiased, ok := m.s.attr["unbiased"].(bool); ok && !unbiased {
		correction = 0
	}
	if n <= correction {
		return m.unknown("of %g elements", n)
	}
	b := m.b
	mean := b.Unrounded(b.Div("mean", b.Unrounded(b.Sum("sum of mean", rows)), b.Literal(n)))
	d := b.Unrounded(b.Sub("deviation", rows, mean))
	v := b.Div("variance", b.Sum("sum of variance", b.Unrounded(b.Mul("square", d, d))), b.Literal(n-correction))
	if m.o.Name == "var" {
		return v
	}
	return b.Sqrt("root", v)
}

// softmax is e^(x−max) / Σ e^(x−max) along an axis, in float32.
func softmax(m *maker) program.Var {
	return m.along(func(rows program.Var) program.Var { return op.Softmax{}.Steps(m.b, []program.Var{rows}, nil) })
}

// logSoftmax is x − max − log Σ e^(x−max).
func logSoftmax(m *maker) program.Var {
	return m.along(func(rows program.Var) program.Var {
		d := m.b.Sub("difference", rows, m.b.RowMax(rows))
		return m.b.Sub("result", d, m.b.Log("log", m.b.Sum("sum", m.b.Exp("exp", d))))
	})
}

// along computes by rows of the axis dim.
func (m *maker) along(f func(rows program.Var) program.Var) program.Var {
	m.only("dim")
	v := m.operand(0)
	moved, back := lastAxis(len(v.Shape), axisOf(m.b, m.integer("dim", -1), v.Shape))
	return m.b.Permute(f(m.b.Permute(v, moved...)), back...)
}

// logSumExp is max + log Σ e^(x−max). torch rounds each step to the dtype of the operand.
func logSumExp(m *maker) program.Var {
	m.only("dim", "keepdim")
	axes, _ := m.integers("dim")
	rows, _ := rowsOver(m.b, m.operand(0), axes)
	top := m.b.RowMax(rows)
	exp := m.narrow(m.b.Exp("exp", m.narrow(m.b.Sub("difference", rows, top))))
	return m.b.Add("result", m.narrow(m.b.Log("log", m.narrow(m.b.Sum("sum", exp)))), top)
}

// layerNorm is (x − mean)·r·w + b with r = (variance + ε)^(−1/2), in float32; torch computes x·r − mean·r. Its mean and variance
// are updated as it goes (Welford). Operands: x, w, b.
func layerNorm(m *maker) program.Var {
	m.only("normalized_shape", "eps")
	x := m.operand(0)
	axes, ok := m.integers("normalized_shape")
	if !ok || len(axes) != 1 || x.Last() != axes[0] {
		return m.unknown("its normalized_shape")
	}
	b := m.b
	n := b.Literal(float64(x.Last()))
	mean := b.Unrounded(b.Div("mean", b.Unrounded(b.Sum("sum of mean", x)), n))
	d := b.Unrounded(b.Sub("deviation", x, mean))
	r := b.Rsqrt("rsqrt", b.Add("+eps", b.Mean("variance", b.Unrounded(b.Mul("square", d, d))), b.Scalar("eps", m.real("eps", 1e-5))))
	switch m.o.Out {
	case 1:
		return mean
	case 2:
		return r
	}
	y := b.Sub("centered", b.Mul("product", x, r), b.Mul("shift", mean, r))
	if m.has(1) {
		y = b.Mul("weight", y, m.operand(1))
	}
	if m.has(2) {
		y = b.Add("bias", y, m.operand(2))
	}
	return y
}
