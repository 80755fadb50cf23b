package quant

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Wherever numbers are within their bounds, each kernel makes of them what is within the bounds of the result: those of one kernel hold for
// the other, too, where the numbers are not exact.
func TestBoundsOfRoundedOperandsHold(t *testing.T) {
	for _, format := range []string{"Q8_0", "Q4_1", "Q4_K", "F16", "BF16", "int8, by row"} {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				kernels := Kernels(format, hooks.BF16)
				o := kernels[0]
				n := 2 * max(o.Elements, 4)
				x, near, bound := make([]float64, n), make([]float64, n), make([]float64, n)
				size := math.Pow(10, rapid.Float64Range(-4, 3).Draw(t, "size"))
				rel := math.Pow(2, rapid.Float64Range(-23, -4).Draw(t, "relative bound"))
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
				for i := range x {
					x[i] = float64(float32(size * (2*rng.Float64() - 1)))
					bound[i] = rel * math.Abs(x[i])
					near[i] = x[i] + bound[i]*(2*rng.Float64()-1)
				}
				before := slices.Clone(bound)
				o.Round(len(x), x, bound)
				for _, other := range kernels {
					if other.Name != o.Name {
						continue
					}
					y := slices.Clone(near)
					other.Round(len(y), y, nil)
					for i := range y {
						if d := math.Abs(y[i] - x[i]); d > bound[i]*(1+1e-9) {
							t.Fatalf("element %d is off by %g, the bound is %g (it was %g)", i, d, bound[i], before[i])
						}
					}
				}
			})
		})
	}
}

// What is exact stays so: no bound comes out of none.
func TestRoundedOperandsOfExactNumbersAreExact(t *testing.T) {
	for _, format := range []string{"Q8_0", "Q4_0", "Q5_0", "Q4_1", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "F16", "BF16", "int8, by row"} {
		for _, o := range Kernels(format, hooks.BF16) {
			x, bound := make([]float64, 256), make([]float64, 256)
			for i := range x {
				x[i] = float64(float32(math.Sin(float64(i * i))))
			}
			was := slices.Clone(x)
			o.Round(len(x), x, bound)
			if slices.ContainsFunc(bound, func(e float64) bool { return e != 0 }) {
				t.Errorf("%s: exact numbers have bounds", format)
			}
			worst := 0.0
			for i := range x {
				worst = max(worst, math.Abs(x[i]-was[i]))
			}
			if worst == 0 || worst > 0.005 {
				t.Errorf("%s: the numbers moved by up to %g, want some, and at most half a step of 8 bits", format, worst)
			}
		}
	}
	for _, format := range []string{"F32", "GPTQ", "int8, one scale"} {
		if Kernels(format, hooks.BF16) != nil {
			t.Errorf("%s: nothing is known of it", format)
		}
	}
}

// The kernels of Q4_1 multiply codes and offsets apart: what they give is what ggml's loops give, without the roundings of float32.
func TestOffsetsAreMultipliedWithSums(t *testing.T) {
	codeOf := []func(x, most float32) float64{
		func(x, most float32) float64 { return math.RoundToEven(float64(x * (127 / most))) },
		func(x, most float32) float64 { return math.Round(float64(x * (1 / (most / 127)))) },
	}
	rapid.Check(t, func(t *rapid.T) {
		const row, group, groups = 96, 32, 3
		which := rapid.IntRange(0, 1).Draw(t, "kernel")
		k := Kernels("Q4_1", hooks.F32)[which]
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		mean, size := rapid.Float64Range(-2, 2).Draw(t, "mean"), math.Pow(10, rapid.Float64Range(-6, 3).Draw(t, "size"))
		x, codes := make([]float64, row), make([]float64, row)
		steps, offsets, weight := make([]float64, groups), make([]float64, groups), make([]float64, k.Columns(row))
		for g := range groups {
			steps[g], offsets[g] = floats.Round(hooks.F16, rng.NormFloat64()/64), floats.Round(hooks.F16, rng.NormFloat64())
		}
		for i := range x {
			x[i], codes[i] = float64(float32(size*(rng.NormFloat64()+mean))), float64(rng.IntN(16))
			weight[i] = steps[i/group]*codes[i] + offsets[i/group]
		}
		want := 0.0
		for g := range groups {
			block := x[g*group:][:group]
			most := float32(max(slices.Max(block), -slices.Min(block)))
			products, sum, d := 0.0, 0.0, most/127
			for i, v := range block {
				q := codeOf[which](float32(v), most)
				products += q * codes[g*group+i]
				sum += q
			}
			want += steps[g]*floats.Round(hooks.F16, float64(d))*products + offsets[g]*floats.Round(hooks.F16, float64(d*float32(sum)))
		}
		k.Weight(weight, row, group, steps, offsets)
		long, _ := k.Operand(row, x, nil)
		got := 0.0
		for i, v := range long {
			got += v * weight[i]
		}
		if math.Abs(got-want) > 1e-12*row*size {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// The bound of the numbers beside a block holds for whatever is within the bounds of the block.
func TestBoundsBesideBlocksHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kernels := Kernels("Q5_1", hooks.F32)
		const row = 64
		x, near, bound := make([]float64, row), make([]float64, row), make([]float64, row)
		size, rel := math.Pow(10, rapid.Float64Range(-6, 3).Draw(t, "size")), math.Pow(2, rapid.Float64Range(-23, -4).Draw(t, "relative bound"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for i := range x {
			x[i] = float64(float32(size * (2*rng.Float64() - 1)))
			bound[i] = rel * math.Abs(x[i])
			near[i] = x[i] + bound[i]*(2*rng.Float64()-1)
		}
		long, bounds := kernels[0].Operand(row, x, bound)
		for _, other := range kernels {
			theirs, _ := other.Operand(row, slices.Clone(near), nil)
			for b := range row / 32 {
				at := row + beside*b
				// The sum itself is in the product twice, with both signs: it may be anything.
				if d := math.Abs(theirs[at] - long[at]); d > bounds[at]*(1+1e-9) || bounds[at+1]+bounds[at+2] != 0 || long[at+1] != long[at+2] {
					t.Fatalf("block %d is off by %g, the bound is %g", b, d, bounds[at])
				}
			}
		}
	})
}

// MLX's kernel for the processor rounds each product and each sum to the dtype: no operand within its bound gives a sum beyond the bound.
func TestSumsInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]hooks.DType{hooks.BF16, hooks.F16}).Draw(t, "dtype")
		kernels := Kernels("MLX affine, 4 bits, groups of 32", d)
		k := kernels[len(kernels)-1]
		const row, group = 64, 32
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rel := rapid.SampledFrom([]float64{0, 0x1p-9, 0x1p-5}).Draw(t, "relative bound")
		w, x, bound, near := make([]float64, row), make([]float64, row), make([]float64, row), make([]float64, row)
		steps := []float64{floats.Round(d, rng.NormFloat64()/16), floats.Round(d, rng.NormFloat64()/16)}
		offsets := []float64{-8 * steps[0], floats.Round(d, rng.NormFloat64())}
		r := func(v float64) float64 { return floats.Round(d, float64(float32(v))) }
		var mine, theirs float64
		for i := range w {
			code := float64(rng.IntN(16))
			g := i / group
			w[i] = float64(float32(steps[g]*code + offsets[g]))
			x[i] = floats.Round(d, rng.NormFloat64())
			bound[i] = rel * math.Abs(x[i])
			near[i] = x[i] + bound[i]*(2*rng.Float64()-1)
			weight := r(r(steps[g]*code) + offsets[g])
			mine, theirs = r(mine+r(weight*x[i])), r(theirs+r(weight*near[i]))
		}
		k.Weight(w, row, group, steps, offsets)
		v, e := k.Sum()(w, x, bound)
		if v != mine || math.Abs(theirs-v) > e {
			t.Fatalf("%v ± %v, want %v, and %v within", v, e, mine, theirs)
		}
	})
}
