package singles

import (
	"math"
	"math/rand/v2"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// Kinds are the kinds of data.
var Kinds = []string{"Gaussian", "positive", "massive", "heavy-tailed", "constant", "few-valued"}

// Draw takes n numbers of one kind, of a typical size.
func Draw(rng *rand.Rand, kind string, n int, size float64) []float32 {
	x := make([]float32, n)
	few := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
	for i := range x {
		v := rng.NormFloat64()
		switch kind {
		case "positive":
			v = rng.Float64()
		case "massive":
			if rng.IntN(500) == 0 {
				v *= 1500
			}
		case "heavy-tailed": // Student's t with two degrees of freedom: its variance is infinite
			v /= math.Sqrt(-math.Log(1 - rng.Float64()))
		case "constant":
			v = few[0]
		case "few-valued":
			v = few[rng.IntN(3)]
		}
		x[i] = float32(v * size)
	}
	return x
}

// Drawing is what a healthy operation is drawn from.
type Drawing struct {
	*rand.Rand
	testengine.Kernels
	Kind, Weights string // of data
}

// Array draws a tensor of a kind of data, rounded to the dtype of the kernels.
func (d Drawing) Array(kind string, size float64, shape ...int) Array {
	n, _ := hooks.Elements(shape)
	return Array{shape, d.Rounded(Draw(d.Rand, kind, n, size))}
}

// Length draws a length up to most. It is log-uniform: short and long sums are as usual.
func (d Drawing) Length(most int) int {
	return int(math.Exp(d.Float64() * math.Log(float64(most)+0.999)))
}

// Rows applies f to each row of x and gives the result a last axis of its length.
func Rows(x Array, f func(row []float32) []float32) Array {
	n := x.Shape[len(x.Shape)-1]
	var y []float32
	for i := 0; i < len(x.Data); i += n {
		y = append(y, f(x.Data[i:i+n])...)
	}
	shape := append([]int{}, x.Shape...)
	shape[len(shape)-1] = len(y) / (len(x.Data) / n)
	return Array{shape, y}
}

// One is f for a row that becomes one number.
func One(f func([]float32) float32) func([]float32) []float32 {
	return func(x []float32) []float32 { return []float32{f(x)} }
}

// Each is f for every number of a row.
func Each(f func(float32) float32) func([]float32) []float32 {
	return func(x []float32) []float32 {
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = f(v)
		}
		return y
	}
}
