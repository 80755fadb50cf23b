package recorded_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
)

// real is a float32 or a float64: what a formula is computed in, in plain Go.
type real interface{ float32 | float64 }

// formula is one operation on drawn operands beside what it is in plain Go.
type formula struct {
	op, attr string
	in       []string // operands: "2x3" of that shape, "i2x3:0,1" of indexes, "m2x3:0,1" of flags, or a number
	out      string   // results: "2x3", "i2x3" of indexes, "m2x3" of flags; of several the last has a name
	wide     func(in [][]float64) []float64
	slim     func(in [][]float32) []float32
}

func element[T real](f func(x, y T) T) func(in [][]T) []T {
	return func(in [][]T) []T {
		out := make([]T, len(in[0]))
		for i := range out {
			y := T(0)
			if len(in) > 1 {
				y = in[1][i%len(in[1])]
			}
			out[i] = f(in[0][i], y)
		}
		return out
	}
}

func function(op, attr string, wide func(x float64) float64, more ...string) formula {
	return formula{
		op, attr, append([]string{"2x5"}, more...), "2x5",
		element(func(x, _ float64) float64 { return wide(x) }),
		element(func(x, _ float32) float32 { return float32(wide(float64(x))) }),
	}
}

func ofTwo(op, attr, other string, wide func(x, y float64) float64, slim func(x, y float32) float32) formula {
	return formula{op, attr, []string{"2x5", other}, "2x5", element(wide), element(slim)}
}

// rows computes by rows of n elements.
func rows[T real](n int, f func(x []T) []T) func(in [][]T) []T {
	return func(in [][]T) []T {
		var out []T
		for at := 0; at < len(in[0]); at += n {
			out = append(out, f(in[0][at:at+n])...)
		}
		return out
	}
}

func sumOf[T real](x []T) []T {
	var s T
	for _, v := range x {
		s += v
	}
	return []T{s}
}

func meanOf[T real](x []T) []T { return []T{sumOf(x)[0] / T(len(x))} }

func lengthOf[T real](x []T) []T {
	var s T
	for _, v := range x {
		s += v * v
	}
	return []T{T(math.Sqrt(float64(s)))}
}

func varianceOf[T real](correction int) func(x []T) []T {
	return func(x []T) []T {
		mean, v := meanOf(x)[0], T(0)
		for _, x := range x {
			v += (x - mean) * (x - mean)
		}
		return []T{v / T(len(x)-correction)}
	}
}

func deviationOf[T real](x []T) []T {
	return []T{T(math.Sqrt(float64(varianceOf[T](1)(x)[0])))}
}

func softmaxOf[T real](x []T) []T {
	top, s := slices.Max(x), T(0)
	out := make([]T, len(x))
	for i, v := range x {
		out[i] = T(math.Exp(float64(v - top)))
		s += out[i]
	}
	for i := range out {
		out[i] /= s
	}
	return out
}

func logSoftmaxOf[T real](x []T) []T {
	top, s := slices.Max(x), T(0)
	out := make([]T, len(x))
	for _, v := range x {
		s += T(math.Exp(float64(v - top)))
	}
	for i, v := range x {
		out[i] = v - top - T(math.Log(float64(s)))
	}
	return out
}

func logSumExpOf[T real](x []T) []T {
	top, s := slices.Max(x), T(0)
	for _, v := range x {
		s += T(math.Exp(float64(v - top)))
	}
	return []T{T(math.Log(float64(s))) + top}
}

func cumulativeOf[T real](x []T) []T {
	out := make([]T, len(x))
	var s T
	for i, v := range x {
		s += v
		out[i] = s
	}
	return out
}

// layerNormOf is on rows of 5, in two passes.
func layerNormOf[T real](in [][]T) []T {
	return rows(5, func(x []T) []T {
		mean := meanOf(x)[0]
		var v T
		for _, x := range x {
			v += (x - mean) * (x - mean)
		}
		r := T(1 / math.Sqrt(float64(v/T(len(x))+1e-3)))
		out := make([]T, len(x))
		for i := range x {
			out[i] = (x[i]-mean)*r*in[1][i] + in[2][i]
		}
		return out
	})(in)
}

// productOf is [b, r, k] times [b, k, c], and what is added to it.
func productOf[T real](b, r, k, c int, bias int) func(in [][]T) []T {
	return func(in [][]T) []T {
		var add []T
		if bias >= 0 {
			add, in = in[0], in[1:]
		}
		out := make([]T, b*r*c)
		for i := range out {
			n, row, col := i/(r*c), i/c%r, i%c
			for j := range k {
				out[i] += in[0][n*r*k+row*k+j] * in[1][n*k*c+j*c+col]
			}
			if add != nil {
				out[i] += add[i%len(add)]
			}
		}
		return out
	}
}

// convolutionOf is of x [1, 4, 6] with w [4, 2, 3] in two groups, padded by one.
func convolutionOf[T real](in [][]T) []T {
	var out []T
	for o := range 4 {
		for t := range 6 {
			s := in[2][o]
			for c := range 2 {
				for k := range 3 {
					if at := t + k - 1; at >= 0 && at < 6 {
						s += in[0][(o/2*2+c)*6+at] * in[1][(o*2+c)*3+k]
					}
				}
			}
			out = append(out, s)
		}
	}
	return out
}

// depthwiseOf is of x [1, 3, 7] with w [3, 1, 4], one kernel a channel, as a state-space model has it.
func depthwiseOf[T real](in [][]T) []T {
	var out []T
	for c := range 3 {
		for t := range 4 {
			var s T
			for k := range 4 {
				s += in[0][c*7+t+k] * in[1][c*4+k]
			}
			out = append(out, s)
		}
	}
	return out
}

func moved[T real](index ...int) func(in [][]T) []T {
	return func(in [][]T) []T {
		all := slices.Concat(in...)
		out := make([]T, len(index))
		for i, k := range index {
			if k >= 0 {
				out[i] = all[k]
			}
		}
		return out
	}
}

func move(op, attr string, in []string, out string, index ...int) formula {
	return formula{op, attr, in, out, moved[float64](index...), moved[float32](index...)}
}

func flags[T real](f func(x, y T) bool) func(in [][]T) []T {
	return element(func(x, y T) T {
		if f(x, y) {
			return 1
		}
		return 0
	})
}

func comparison(op string, wide func(x, y float64) bool, slim func(x, y float32) bool) formula {
	return formula{op, "", []string{"2x5", "2x5"}, "m2x5", flags(wide), flags(slim)}
}

// largestOf are the indexes of the largest elements, or the smallest, k times the first that is not there yet.
func largestOf[T real](k int, largest bool) func(x []T) []T {
	return func(x []T) []T {
		var out []T
		for range k {
			best := -1
			for i, v := range x {
				if !slices.Contains(out, T(i)) && (best < 0 || v > x[best] == largest) {
					best = i
				}
			}
			out = append(out, T(best))
		}
		return out
	}
}

// added is x of rows of n elements with some rows of y, times a number, added by index.
func added[T real](n int, by T, index ...int) func(in [][]T) []T {
	return func(in [][]T) []T {
		out := slices.Clone(in[0])
		for r, k := range index {
			for i := range n {
				out[k*n+i] += by * in[1][r*n+i]
			}
		}
		return out
	}
}

// scaledProductOf is a tenth of what is added, and a quarter of a product.
func scaledProductOf[T real](in [][]T) []T {
	out := productOf[T](2, 3, 8, 4, -1)(in[1:])
	for i := range out {
		out[i] = out[i]/4 + in[0][i]/2
	}
	return out
}

// wholes are whole parts of 7, −7, 5, 1 and −5 halves.
func wholes(op, attr string, want ...float64) formula {
	return formula{op, attr, []string{"i5:7,-7,5,1,-5", "i1:2"}, "i5", func([][]float64) []float64 { return want }, func([][]float32) []float32 {
		out := make([]float32, len(want))
		for i, v := range want {
			out[i] = float32(v)
		}
		return out
	}}
}

// solvedOf is X of L·X = B of three equations. With unit the diagonal of L counts as ones.
func solvedOf[T real](upper, unit bool) func(in [][]T) []T {
	return func(in [][]T) []T {
		x := slices.Clone(in[1])
		rows := []int{0, 1, 2}
		if upper {
			rows = []int{2, 1, 0}
		}
		for n, i := range rows {
			for c := range 2 {
				for _, k := range rows[:n] {
					x[i*2+c] -= in[0][i*3+k] * x[k*2+c]
				}
				if !unit {
					x[i*2+c] /= in[0][i*3+i]
				}
			}
		}
		return x
	}
}

// attentionOf is that of one head with three queries, keys and values of four channels, causal or with a mask that is added.
func attentionOf[T real](scale T, causal bool) func(in [][]T) []T {
	return func(in [][]T) []T {
		var out []T
		for q := range 3 {
			var scores []T
			for k := range 3 {
				var s T
				for d := range 4 {
					s += in[0][q*4+d] * in[1][k*4+d]
				}
				if s *= scale; !causal {
					s += in[3][q*3+k]
				}
				if !causal || k <= q {
					scores = append(scores, s)
				}
			}
			for d := range 4 {
				var s T
				for k, p := range softmaxOf(scores) {
					s += p * in[2][k*4+d]
				}
				out = append(out, s)
			}
		}
		return out
	}
}

// groupedOf is causal attention of two heads of queries that have one head of keys.
func groupedOf[T real](in [][]T) []T {
	var out []T
	for h := range 2 {
		out = append(out, attentionOf[T](0.5, true)([][]T{in[0][12*h : 12*(h+1)], in[1], in[2]})...)
	}
	return out
}

func extremeOf[T real](x []T) []T { return []T{slices.Max(x)} }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

var formulas = []formula{
	ofTwo("add", "", "2x5", func(x, y float64) float64 { return x + y }, func(x, y float32) float32 { return x + y }),
	ofTwo("add", `"alpha":0.3`, "2x5", func(x, y float64) float64 { return x + 0.3*y }, func(x, y float32) float32 { return x + 0.3*y }),
	ofTwo("sub", "", "5", func(x, y float64) float64 { return x - y }, func(x, y float32) float32 { return x - y }),
	ofTwo("rsub", "", "2x5", func(x, y float64) float64 { return y - x }, func(x, y float32) float32 { return y - x }),
	ofTwo("mul", "", "1x5", func(x, y float64) float64 { return x * y }, func(x, y float32) float32 { return x * y }),
	ofTwo("mul", "", "0.1", func(x, y float64) float64 { return x * 0.1 }, func(x, y float32) float32 { return x * 0.1 }),
	ofTwo("div", "", "2x5", func(x, y float64) float64 { return x / y }, func(x, y float32) float32 { return x / y }),
	ofTwo("maximum", "", "2x5", math.Max, func(x, y float32) float32 { return max(x, y) }),
	ofTwo("minimum", "", "2x5", math.Min, func(x, y float32) float32 { return min(x, y) }),
	function("neg", "", func(x float64) float64 { return -x }),
	function("abs", "", math.Abs),
	function("relu", "", func(x float64) float64 { return math.Max(x, 0) }),
	function("clamp", `"min":-0.5,"max":0.75`, func(x float64) float64 { return math.Min(math.Max(x, -0.5), 0.75) }),
	function("clamp", `"max":0.25`, func(x float64) float64 { return math.Min(x, 0.25) }),
	function("reciprocal", "", func(x float64) float64 { return 1 / x }),
	function("square", "", func(x float64) float64 { return x * x }),
	function("pow", "", func(x float64) float64 { return x * x }, "2"),
	function("pow", "", func(x float64) float64 { return x * x * x }, "3"),
	function("pow", "", func(x float64) float64 { return x * x * x * x }, "4"),
	function("pow", "", func(x float64) float64 { return 1 / x }, "-1"),
	function("exp", "", math.Exp), function("expm1", "", math.Expm1),
	function("tanh", "", math.Tanh), function("erf", "", math.Erf), function("cos", "", math.Cos), function("sin", "", math.Sin),
	function("sigmoid", "", sigmoid), function("silu", "", func(x float64) float64 { return x * sigmoid(x) }),
	function("softplus", "", func(x float64) float64 { return math.Log1p(math.Exp(x)) }),
	function("log_sigmoid", "", func(x float64) float64 { return -math.Log1p(math.Exp(-x)) }),
	function("gelu", "", func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }),
	function("gelu", `"approximate":"tanh"`, func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}),
	{"sum", `"dim":[-1],"keepdim":true`, []string{"3x7"}, "3x1", rows(7, sumOf[float64]), rows(7, sumOf[float32])},
	{"sum", ``, []string{"3x7"}, "", rows(21, sumOf[float64]), rows(21, sumOf[float32])},
	{"sum", `"dim":[1,2]`, []string{"3x2x7"}, "3", rows(14, sumOf[float64]), rows(14, sumOf[float32])},
	{"mean", `"dim":[-1]`, []string{"3x7"}, "3", rows(7, meanOf[float64]), rows(7, meanOf[float32])},
	{"vector_norm", `"dim":[-1],"keepdim":true`, []string{"3x7"}, "3x1", rows(7, lengthOf[float64]), rows(7, lengthOf[float32])},
	{"var", `"dim":[-1],"correction":0`, []string{"3x7"}, "3", rows(7, varianceOf[float64](0)), rows(7, varianceOf[float32](0))},
	{"std", `"dim":[-1],"keepdim":true`, []string{"3x7"}, "3x1", rows(7, deviationOf[float64]), rows(7, deviationOf[float32])},
	{"zeros_like", ``, []string{"3"}, "3", func(in [][]float64) []float64 { return make([]float64, 3) }, func(in [][]float32) []float32 { return make([]float32, 3) }},
	{"cumsum", `"dim":-1`, []string{"3x7"}, "3x7", rows(7, cumulativeOf[float64]), rows(7, cumulativeOf[float32])},
	{"softmax", `"dim":-1`, []string{"3x7"}, "3x7", rows(7, softmaxOf[float64]), rows(7, softmaxOf[float32])},
	{"log_softmax", `"dim":-1`, []string{"3x7"}, "3x7", rows(7, logSoftmaxOf[float64]), rows(7, logSoftmaxOf[float32])},
	{"logsumexp", `"dim":[-1]`, []string{"3x7"}, "3", rows(7, logSumExpOf[float64]), rows(7, logSumExpOf[float32])},
	{"amax", `"dim":[-1]`, []string{"3x7"}, "3", rows(7, func(x []float64) []float64 { return []float64{slices.Max(x)} }), rows(7, func(x []float32) []float32 { return []float32{slices.Max(x)} })},
	{"native_layer_norm", `"normalized_shape":[5],"eps":1e-3`, []string{"2x5", "5", "5"}, "2x5", layerNormOf[float64], layerNormOf[float32]},
	{"mm", "", []string{"3x8", "8x4"}, "3x4", productOf[float64](1, 3, 8, 4, -1), productOf[float32](1, 3, 8, 4, -1)},
	{"bmm", "", []string{"2x3x8", "2x8x4"}, "2x3x4", productOf[float64](2, 3, 8, 4, -1), productOf[float32](2, 3, 8, 4, -1)},
	{"addmm", "", []string{"4", "3x8", "8x4"}, "3x4", productOf[float64](1, 3, 8, 4, 0), productOf[float32](1, 3, 8, 4, 0)},
	{"baddbmm", "", []string{"2x3x4", "2x3x8", "2x8x4"}, "2x3x4", productOf[float64](2, 3, 8, 4, 0), productOf[float32](2, 3, 8, 4, 0)},
	{"mv", "", []string{"3x8", "8"}, "3", productOf[float64](1, 3, 8, 1, -1), productOf[float32](1, 3, 8, 1, -1)},
	{"convolution", `"stride":[1],"padding":[1],"dilation":[1],"transposed":false,"output_padding":[0],"groups":2`, []string{"1x4x6", "4x2x3", "4"}, "1x4x6", convolutionOf[float64], convolutionOf[float32]},
	{"convolution", `"stride":[1],"padding":[0],"dilation":[1],"transposed":false,"output_padding":[0],"groups":3`, []string{"1x3x7", "3x1x4"}, "1x3x4", depthwiseOf[float64], depthwiseOf[float32]},
	comparison("gt", func(x, y float64) bool { return x > y }, func(x, y float32) bool { return x > y }),
	comparison("ge", func(x, y float64) bool { return x >= y }, func(x, y float32) bool { return x >= y }),
	comparison("lt", func(x, y float64) bool { return x < y }, func(x, y float32) bool { return x < y }),
	comparison("le", func(x, y float64) bool { return x <= y }, func(x, y float32) bool { return x <= y }),
	comparison("eq", func(x, y float64) bool { return x == y }, func(x, y float32) bool { return x == y }),
	comparison("ne", func(x, y float64) bool { return x != y }, func(x, y float32) bool { return x != y }),
	{"topk", `"k":3`, []string{"3x7"}, "3x3 i3x3", rows(7, largestOf[float64](3, true)), rows(7, largestOf[float32](3, true))},
	{"topk", `"k":2,"largest":false,"sorted":false`, []string{"3x7"}, "3x2 i3x2", rows(7, largestOf[float64](2, false)), rows(7, largestOf[float32](2, false))},
	{"sort", `"descending":true`, []string{"3x7"}, "3x7 i3x7", rows(7, largestOf[float64](7, true)), rows(7, largestOf[float32](7, true))},
	{"sort", ``, []string{"3x7"}, "3x7 i3x7", rows(7, largestOf[float64](7, false)), rows(7, largestOf[float32](7, false))},
	{"max", `"dim":-1,"keepdim":true`, []string{"3x7"}, "3x1 i3x1", rows(7, largestOf[float64](1, true)), rows(7, largestOf[float32](1, true))},
	{"min", `"dim":1`, []string{"3x7"}, "3 i3", rows(7, largestOf[float64](1, false)), rows(7, largestOf[float32](1, false))},
	{"max", ``, []string{"3x7"}, "", rows(21, extremeOf[float64]), rows(21, extremeOf[float32])},
	{"argmax", `"dim":-1`, []string{"3x7"}, "i3", rows(7, largestOf[float64](1, true)), rows(7, largestOf[float32](1, true))},
	{"argmin", ``, []string{"3x7"}, "i", rows(21, largestOf[float64](1, false)), rows(21, largestOf[float32](1, false))},
	{"index_add", `"dim":0,"alpha":0.5`, []string{"3x4", "i5:2,0,2,2,1", "5x4"}, "3x4", added[float64](4, 0.5, 2, 0, 2, 2, 1), added[float32](4, 0.5, 2, 0, 2, 2, 1)},
	{"index_put", `"accumulate":true`, []string{"3x4", "i5:2,0,-1,2,1", "5x4"}, "3x4", added[float64](4, 1, 2, 0, 2, 2, 1), added[float32](4, 1, 2, 0, 2, 2, 1)},
	{"scatter_add", `"dim":0`, []string{"3x2", "i4x2:2,2,0,0,2,2,1,1", "4x2"}, "3x2", added[float64](2, 1, 2, 0, 2, 1), added[float32](2, 1, 2, 0, 2, 1)},
	{"baddbmm", `"alpha":0.25,"beta":0.5`, []string{"2x3x4", "2x3x8", "2x8x4"}, "2x3x4", scaledProductOf[float64], scaledProductOf[float32]},
	{"floor", "", []string{"2x5"}, "2x5", element(func(x, _ float64) float64 { return math.Floor(x) }), element(func(x, _ float32) float32 { return float32(math.Floor(float64(x))) })},
	wholes("div", `"rounding_mode":"trunc"`, 3, -3, 2, 0, -2),
	wholes("div", `"rounding_mode":"floor"`, 3, -4, 2, 0, -3),
	wholes("floor_divide", ``, 3, -4, 2, 0, -3),
	{"linalg_solve_triangular", `"upper":false,"unitriangular":true`, []string{"3x3", "3x2"}, "3x2", solvedOf[float64](false, true), solvedOf[float32](false, true)},
	{"linalg_solve_triangular", `"upper":true,"unitriangular":true`, []string{"3x3", "3x2"}, "3x2", solvedOf[float64](true, true), solvedOf[float32](true, true)},
	{"linalg_solve_triangular", `"upper":true`, []string{"3x3", "3x2"}, "3x2", solvedOf[float64](true, false), solvedOf[float32](true, false)},
	{"_scaled_dot_product_flash_attention_for_cpu", `"is_causal":true`, []string{"1x1x3x4", "1x1x3x4", "1x1x3x4"}, "1x1x3x4", attentionOf[float64](0.5, true), attentionOf[float32](0.5, true)},
	{"_scaled_dot_product_flash_attention_for_cpu", `"is_causal":true`, []string{"1x2x3x4", "1x1x3x4", "1x1x3x4"}, "1x2x3x4", groupedOf[float64], groupedOf[float32]},
	{"_scaled_dot_product_flash_attention_for_cpu", `"scale":0.25`, []string{"1x1x3x4", "1x1x3x4", "1x1x3x4", "m3x3:1,0,0,1,1,0,1,1,1"}, "1x1x3x4", attentionOf[float64](0.25, true), attentionOf[float32](0.25, true)},
	{"_scaled_dot_product_flash_attention_for_cpu", ``, []string{"1x1x3x4", "1x1x3x4", "1x1x3x4", "3x3"}, "1x1x3x4", attentionOf[float64](0.5, false), attentionOf[float32](0.5, false)},
	move("scatter", `"dim":1`, []string{"2x3", "i2x2:0,2,1,0", "2x2"}, "2x3", 6, 1, 7, 9, 8, 5),
	move("index_copy", `"dim":1`, []string{"2x3", "i2:2,0", "2x2"}, "2x3", 7, 1, 6, 9, 4, 8),
	move("index_put", "", []string{"3x2", "i2:2,0", "2x2"}, "3x2", 8, 9, 2, 3, 6, 7),
	move("index_put", "", []string{"2x3", "i2:1,0", "i2:2,1", "2"}, "2x3", 0, 7, 2, 3, 4, 6),
	move("index_put", "", []string{"2x2", "m2x2:0,1,1,0", "2"}, "2x2", 0, 4, 5, 3),
	move("index", "", []string{"2x3x2", "i2:1,0", "i2:2,1"}, "2x2", 10, 11, 2, 3),
	move("index", "", []string{"3x2", "m3:1,0,1"}, "2x2", 0, 1, 4, 5),
	{"bitwise_not", "", []string{"m2x2:0,1,1,0"}, "m2x2", func([][]float64) []float64 { return []float64{1, 0, 0, 1} }, func([][]float32) []float32 { return []float32{1, 0, 0, 1} }},
	{"logical_not", "", []string{"m4:0,1,1,0"}, "m4", func([][]float64) []float64 { return []float64{1, 0, 0, 1} }, func([][]float32) []float32 { return []float32{1, 0, 0, 1} }},
	{"bitwise_and", "", []string{"m4:0,1,1,0", "m4:1,1,0,0"}, "m4", func([][]float64) []float64 { return []float64{0, 1, 0, 0} }, func([][]float32) []float32 { return []float32{0, 1, 0, 0} }},
	{"bitwise_or", "", []string{"m4:0,1,1,0", "m4:1,1,0,0"}, "m4", func([][]float64) []float64 { return []float64{1, 1, 1, 0} }, func([][]float32) []float32 { return []float32{1, 1, 1, 0} }},
	move("to", "", []string{"2x3"}, "2x3", 0, 1, 2, 3, 4, 5),
	move("to", "", []string{"3"}, "2x3", 0, 1, 2, 0, 1, 2),
	move("cat", `"dim":1`, []string{"2x1", "2x2"}, "2x3", 0, 2, 3, 1, 4, 5),
	move("cat", `"dim":-1`, []string{"0", "2x2"}, "2x2", 0, 1, 2, 3),
	move("stack", `"dim":1`, []string{"2x2", "2x2"}, "2x2x2", 0, 1, 4, 5, 2, 3, 6, 7),
	move("repeat", `"repeats":[2,1,2]`, []string{"1x2"}, "2x1x4", 0, 1, 0, 1, 0, 1, 0, 1),
	move("pad", `"pad":[1,2]`, []string{"2x2"}, "2x5", -1, 0, 1, -1, -1, -1, 2, 3, -1, -1),
	move("pad", `"pad":[-1,1,0,1]`, []string{"2x2"}, "3x2", 1, -1, 3, -1, -1, -1),
	move("flip", `"dims":[1]`, []string{"2x2"}, "2x2", 1, 0, 3, 2),
	move("write", `"shape":[2],"stride":[3],"offset":1`, []string{"6", "2"}, "6", 0, 6, 2, 3, 7, 5),
	move("gather", `"dim":1`, []string{"2x3", "i2x2:0,2,1,1"}, "2x2", 0, 2, 4, 4),
	move("index_select", `"dim":0`, []string{"3x2", "i2:2,0"}, "2x2", 4, 5, 0, 1),
	move("index", "", []string{"3x2", "i1x2:1,1"}, "1x2x2", 2, 3, 2, 3),
	move("index", "", []string{"2x3", "null", "i2:2,0"}, "2x2", 2, 0, 5, 3),
	move("index", "", []string{"2x3", "null", "i2:-1,0"}, "2x2", 2, 0, 5, 3),
	move("embedding", "", []string{"3x2", "i1x2:2,1"}, "1x2x2", 4, 5, 2, 3),
	move("where", "", []string{"m2x2:1,0,0,1", "2x2", "2"}, "2x2", 0, 5, 4, 3),
	move("masked_fill", "", []string{"2x2", "m2:0,1", "0"}, "2x2", 0, -1, 2, -1),
}

func shapeText(text string) (shape []int) {
	for _, n := range strings.FieldsFunc(text, func(r rune) bool { return r == 'x' }) {
		var d int
		fmt.Sscan(n, &d)
		shape = append(shape, d)
	}
	return shape
}

func jsonShape(shape []int) string { return strings.ReplaceAll(fmt.Sprint(shape), " ", ",") }

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// text is the program of a formula: its operands are weights, so that each is one of the entry's, read whole.
func (f formula) text() (text string, shapes [][]int) {
	var in, weights, constants []string
	for _, o := range f.in {
		switch {
		case o == "null":
			in = append(in, "null")
		case o[0] == 'i' || o[0] == 'm':
			shape, list, _ := strings.Cut(o[1:], ":")
			in = append(in, fmt.Sprintf(`"c%d"`, len(constants)))
			constants = append(constants, constant(o[0] == 'm', shapeText(shape), list))
		case strings.ContainsAny(o, ".-") || f.op == "scatter" && len(in) == 2 && o == "7" || f.op == "pow" && len(in) == 1 || f.op == "masked_fill" && len(in) == 2:
			in = append(in, o)
		default:
			shape := shapeText(o)
			in = append(in, fmt.Sprintf(`"w:x%d"`, len(shapes)))
			weights = append(weights, fmt.Sprintf(`"x%d":{"dtype":"float32","shape":%s}`, len(shapes), jsonShape(shape)))
			shapes = append(shapes, shape)
		}
	}
	var outs []string
	for _, o := range strings.Split(f.out, " ") {
		dtype := map[bool]string{true: "int64", false: "float32"}[strings.HasPrefix(o, "i")]
		if strings.HasPrefix(o, "m") {
			dtype = "bool"
		}
		outs = append(outs, fmt.Sprintf(`[%q,%s]`, dtype, jsonShape(shapeText(strings.TrimLeft(o, "im")))))
	}
	return fmt.Sprintf(`{"format":"tracediff program","version":1,"passes":[{"tokens":1,"past":0,"calls":[[0,-1,[]]]}],"templates":[[
{"op":%q,"in":[%s],"out":[%s],"attr":{%s}},{"name":"y","of":"t%d","level":1}]],"weights":{%s},"constants":[%s]}`,
		f.op, strings.Join(in, ","), strings.Join(outs, ","), f.attr, len(outs)-1, strings.Join(weights, ","), strings.Join(constants, ",")), shapes
}

// table is a weight of the test.
type table struct {
	rows, cols int
	data       []float64
}

func (m table) Size() (rows, cols int) { return m.rows, m.cols }
func (m table) Row(dst []float64, i int) error {
	copy(dst, m.data[i*m.cols:][:m.cols])
	return nil
}

// Every operation is what plain Go computes: in float64, and in float32 within the bound, whatever order its loops add in.
func TestFormulas(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range formulas {
		seen[f.op] = true
		text, shapes := f.text()
		p, err := recorded.Read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", f.op, err, text)
		}
		passes, err := p.Entries()
		if err != nil {
			t.Fatalf("%s: %v\n%s", f.op, err, text)
		}
		e := passes[0][slices.IndexFunc(passes[0], func(e recorded.Entry) bool { return e.Name == "y" })]
		if len(e.Inputs) > 0 { // what is chosen: the choice comes from another entry
			continue
		}
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 7))
			wide, slim, c := make([][]float64, len(shapes)), make([][]float32, len(shapes)), program.Call{Shape: e.Shape}
			for k, shape := range shapes {
				for range elements(shape) {
					x := float32(r.NormFloat64())
					wide[k], slim[k] = append(wide[k], float64(x)), append(slim[k], x)
				}
				size := recorded.Tensor{Shape: shape}.Size()
				c.W = append(c.W, table{size[0], size[1], wide[k]})
			}
			got, err := program.Eval(e.Op, c)
			if err != nil {
				t.Fatalf("%s: %v", f.op, err)
			}
			want := f.wide(wide)
			if len(got.Data) != len(want) {
				t.Fatalf("%s: %d elements, not %d", f.op, len(got.Data), len(want))
			}
			for i, x := range want {
				if !(math.Abs(got.Data[i]-x) <= 1e-7*(math.Abs(x)+1e-3)) { // numbers of the program are float32
					t.Fatalf("%s %s: element %d is %v, not %v", f.op, f.attr, i, got.Data[i], x)
				}
			}
			c.Arith = program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}
			if got, err = program.Eval(e.Op, c); err != nil {
				t.Fatal(err)
			}
			for i, y := range f.slim(slim) {
				v, bound := got.Data[i], got.Bound[i]
				if far := math.Abs(float64(y) - v); !(far <= bound+0x1p-24*math.Abs(v)) {
					t.Errorf("%s %s: element %d is %v in float32, which is %g from %v: the bound is %g", f.op, f.attr, i, y, far, v, bound)
				}
				if !(bound <= 1e-4*(math.Abs(v)+1)) {
					t.Errorf("%s %s: element %d is %v, and its bound %g says nothing", f.op, f.attr, i, v, bound)
				}
			}
		}
	}
	ofComplex := []string{"bits", "polar", "complex_mul"} // see order.TestRecordedComplexNumbers
	for _, op := range recorded.Operations() {
		if !seen[op] && !slices.Contains(ofComplex, op) && op != "fill" && op != "ones_like" && op != "sqrt" && op != "rsqrt" && op != "log" && op != "log1p" && op != "log_sigmoid_forward" && !strings.HasPrefix(op, "logical_") && op != "amin" {
			t.Errorf("%s has no test", op)
		}
	}
}

// constant is an object of a program's table: whole numbers, or flags.
func constant(flags bool, shape []int, list string) string {
	var data []byte
	for _, n := range strings.Split(list, ",") {
		var x int64
		fmt.Sscan(n, &x)
		if flags {
			data = append(data, byte(x))
		} else {
			data = binary.LittleEndian.AppendUint64(data, uint64(x))
		}
	}
	dtype := "int64"
	if flags {
		dtype = "bool"
	}
	sum := sha256.Sum256(data)
	return fmt.Sprintf(`{"dtype":%q,"shape":%s,"from":[],"data":%q,"sha256":%q}`, dtype, jsonShape(shape), base64.StdEncoding.EncodeToString(data), hex.EncodeToString(sum[:]))
}
