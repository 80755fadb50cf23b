package kernel

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Arith is arithmetic in a model dtype: float32, bfloat16 or float16. Every operation computes in float32 from values
// of the dtype and rounds, to nearest even, where torch has a separate tensor operation. Slices of one call have equal
// lengths unless it says otherwise, and dst may be an input.
type Arith struct{ DType hooks.DType }

// R rounds x to the dtype; the identity for float32.
func (a Arith) R(x float32) float32 {
	switch a.DType {
	case hooks.BF16:
		return floats.RoundBF16(x)
	case hooks.F16:
		return floats.RoundF16(x)
	}
	return x
}

// Round rounds every element of x in place.
func (a Arith) Round(x []float32) {
	if a.DType == hooks.F32 {
		return
	}
	for i, v := range x {
		x[i] = a.R(v)
	}
}

// Lowest is the lowest finite number of the dtype: what an additive mask has where a key may not be seen.
func (a Arith) Lowest() float32 {
	switch a.DType {
	case hooks.BF16:
		return math.Float32frombits(0xff7f0000)
	case hooks.F16:
		return -65504
	}
	return -math.MaxFloat32
}

// Add is dst = R(x + y).
func (a Arith) Add(dst, x, y []float32) {
	for i, v := range x {
		dst[i] = a.R(v + y[i])
	}
}

// Sub is dst = R(x − y).
func (a Arith) Sub(dst, x, y []float32) {
	for i, v := range x {
		dst[i] = a.R(v - y[i])
	}
}

// Mul is dst = R(x ⊙ y).
func (a Arith) Mul(dst, x, y []float32) {
	for i, v := range x {
		dst[i] = a.R(v * y[i])
	}
}

// MulRows is dst = R(x ⊙ w) with w along each row of x.
func (a Arith) MulRows(dst, x, w []float32) {
	for from := 0; from < len(x); from += len(w) {
		a.Mul(dst[from:], x[from:from+len(w)], w)
	}
}

// Scale is dst = R(x · by), by a float32.
func (a Arith) Scale(dst, x []float32, by float32) {
	for i, v := range x {
		dst[i] = a.R(v * by)
	}
}

// Div is dst = R(x / by), by a float32.
func (a Arith) Div(dst, x []float32, by float32) {
	for i, v := range x {
		dst[i] = a.R(v / by)
	}
}

// Tanh is dst = R(tanh x).
func (a Arith) Tanh(dst, x []float32) {
	for i, v := range x {
		dst[i] = a.R(float32(math.Tanh(float64(v))))
	}
}

// Softcap is dst = R(R(tanh R(x / c)) · c).
func (a Arith) Softcap(dst, x []float32, c float32) {
	for i, v := range x {
		u := a.R(v / c)
		u = a.R(float32(math.Tanh(float64(u))))
		dst[i] = a.R(u * c)
	}
}

// gelu constants, float32 as in torch's kernel: √(2/π) and the cubic's coefficient.
const (
	geluBeta  = float32(0.7978845608028654)
	geluKappa = float32(0.044715)
)

// GELUTanh is dst = R(0.5x · (1 + tanh(β·(x + 0.044715·x³)))), float32 after every step: for x below −2.5 the
// rounding of 1 + tanh shows even in bfloat16.
func (a Arith) GELUTanh(dst, x []float32) {
	for i, v := range x {
		cube := float32(float32(v*v) * v)
		inner := geluBeta * float32(v+float32(geluKappa*cube))
		tanh := float32(math.Tanh(float64(inner)))
		dst[i] = a.R(float32(0.5*v) * float32(1+tanh))
	}
}

// GELU is dst = R(0.5x · (1 + erf(x/√2))), float32 after every step; √½ is a float32 and multiplies.
func (a Arith) GELU(dst, x []float32) {
	for i, v := range x {
		erf := float32(math.Erf(float64(float32(v * float32(math.Sqrt2/2)))))
		dst[i] = a.R(float32(0.5*v) * float32(1+erf))
	}
}

// SiLU is dst = R(x / (1 + exp(−x))), float32 after every step.
func (a Arith) SiLU(dst, x []float32) {
	for i, v := range x {
		dst[i] = a.R(v / float32(1+float32(math.Exp(float64(-v)))))
	}
}

// RMSNorm normalises each row of width elements: x · (mean x² + eps)^(−1/2) · gain, float32 after every step, one R. A nil gain is a gain of
// 1.
func (a Arith) RMSNorm(dst, x, gain []float32, width int, eps float32) {
	for from := 0; from < len(x); from += width {
		row, out := x[from:from+width], dst[from:from+width]
		var sum float64
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		ms := float32(sum / float64(width))
		inv := float32(1 / math.Sqrt(float64(ms+eps)))
		for k, v := range row {
			y := v * inv
			if gain != nil {
				y *= gain[k]
			}
			out[k] = a.R(y)
		}
	}
}

// MeanSquare is dst[r] = R(mean R(x²)) over each row of width elements.
func (a Arith) MeanSquare(dst, x []float32, width int) {
	for r := range dst {
		var sum float64
		for _, v := range x[r*width : (r+1)*width] {
			sum += float64(a.R(v * v))
		}
		dst[r] = a.R(float32(sum / float64(width)))
	}
}

// Mean is dst[r] = R(mean x) over each row of width elements.
func (a Arith) Mean(dst, x []float32, width int) {
	for r := range dst {
		dst[r] = a.R(float32(mean(x[r*width : (r+1)*width])))
	}
}

func mean(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v)
	}
	return sum / float64(len(x))
}

// Std is dst[r] = R(√(1/n · Σ(x − mean)²)) over each row: the population's, around the unrounded mean.
func (a Arith) Std(dst, x []float32, width int) {
	for r := range dst {
		row := x[r*width : (r+1)*width]
		m := mean(row)
		var sum float64
		for _, v := range row {
			d := float64(v) - m
			sum += d * d
		}
		dst[r] = a.R(float32(math.Sqrt(sum / float64(width))))
	}
}

// NormalQuantile is Φ⁻¹(p) = √2·erfinv(2p−1) as torch has it in float32: p, 2p−1 and the result are rounded.
func NormalQuantile(p float64) float32 {
	x := float32(2*float32(p)) - 1
	return float32(math.Erfinv(float64(x))) * math.Sqrt2
}

// Softmax replaces each row of width elements by its softmax in float32, not rounded to the dtype.
func Softmax(dst, x []float32, width int) {
	for from := 0; from < len(x); from += width {
		row, out := x[from:from+width], dst[from:from+width]
		top := row[0]
		for _, v := range row {
			top = max(top, v)
		}
		var sum float64
		for k, v := range row {
			out[k] = float32(math.Exp(float64(v - top)))
			sum += float64(out[k])
		}
		total := float32(sum)
		for k := range out {
			out[k] /= total
		}
	}
}
