package kernel_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/kernel"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// weight makes a tensor of a format from float32 values.
func weight(format hooks.DType, rows, cols int, v []float32) hooks.Tensor {
	var b []byte
	for _, x := range v {
		switch format {
		case hooks.BF16:
			b = binary.LittleEndian.AppendUint16(b, floats.BF16(x))
		case hooks.F16:
			b = binary.LittleEndian.AppendUint16(b, floats.F16(x))
		default:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return hooks.Tensor{DType: format, Shape: []int{rows, cols}, Data: b}
}

var formats = []hooks.DType{hooks.F32, hooks.BF16, hooks.F16}

// product computes one that has to work.
func product(t rapid.TB, m kernel.Matrix, dst, x []float32, tokens int, bias []float32) {
	if err := m.Mul(dst, x, tokens, bias); err != nil {
		t.Fatal(err)
	}
}

// A product equals the plain sum over the weights as the model's dtype reads them, in every pair of formats, for every
// number of rows, columns and tokens, and a token's result does not depend on the tokens beside it.
func TestMulIsThePlainSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom(formats).Draw(t, "format")
		a := kernel.Arith{DType: rapid.SampledFrom(formats).Draw(t, "dtype")}
		rows, cols := rapid.IntRange(1, 11).Draw(t, "rows"), rapid.IntRange(1, 1100).Draw(t, "cols")
		tokens := rapid.IntRange(1, 5).Draw(t, "tokens")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		draw := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(rng.NormFloat64())
			}
			return v
		}
		w, x := draw(rows*cols), draw(tokens*cols)
		a.Round(x)
		var bias []float32
		if rapid.Bool().Draw(t, "bias") {
			bias = draw(rows)
		}
		m, err := kernel.NewMatrix(weight(format, rows, cols, w), a)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, tokens*rows)
		product(t, m, got, x, tokens, bias)
		row := make([]float32, cols)
		alone := make([]float32, rows)
		for o := range rows {
			m.Row(row, o)
			for n := range tokens {
				var sum, size float64
				for k, v := range row {
					if want := a.R(kernel.Arith{DType: format}.R(w[o*cols+k])); v != want {
						t.Fatalf("weight [%d, %d] reads %g, want %g", o, k, v, want)
					}
					sum += float64(v) * float64(x[n*cols+k])
					size += math.Abs(float64(v) * float64(x[n*cols+k]))
				}
				if bias != nil {
					sum += float64(bias[o])
				}
				slack := 1e-13 * size // the order of a float64 sum
				low, high := a.R(float32(sum-slack)), a.R(float32(sum+slack))
				if y := got[n*rows+o]; y < low || y > high {
					t.Fatalf("row %d, token %d is %g, want %g", o, n, y, a.R(float32(sum)))
				}
			}
		}
		for n := range tokens {
			product(t, m, alone, x[n*cols:(n+1)*cols], 1, bias)
			for o := range rows {
				if alone[o] != got[n*rows+o] {
					t.Fatalf("token %d alone gives %g, with others %g", n, alone[o], got[n*rows+o])
				}
			}
		}
	})
}

// A product large enough to be split gives the same bits on one core and on several, with weights in memory and in a file.
func TestMulOnAnyNumberOfCores(t *testing.T) {
	const rows, cols, tokens = 1027, 700, 3
	rng := rand.New(rand.NewPCG(1, 2))
	w, x := make([]float32, rows*cols), make([]float32, tokens*cols)
	for i := range w {
		w[i] = float32(rng.NormFloat64())
	}
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	stored := weight(hooks.F32, rows, cols, w)
	m, err := kernel.NewMatrix(stored, kernel.Arith{DType: hooks.F32})
	if err != nil {
		t.Fatal(err)
	}
	inFile := m
	inFile.In(bytes.NewReader(append([]byte("before"), stored.Data...)), int64(len("before")))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	want := make([]float32, tokens*rows)
	for _, cores := range []int{1, 2, 3, 7} {
		runtime.GOMAXPROCS(cores)
		for _, m := range []kernel.Matrix{m, inFile} {
			got := make([]float32, tokens*rows)
			product(t, m, got, x, tokens, nil)
			if want[0] == 0 {
				copy(want, got)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%d cores: element %d is %g, one core gives %g", cores, i, got[i], want[i])
				}
			}
		}
	}
}

// A file that ends before the weight does is an error, where the processor has what reads it.
func TestMulOfAFileThatEnds(t *testing.T) {
	const rows, cols = 64, 64
	stored := weight(hooks.BF16, rows, cols, make([]float32, rows*cols))
	m, err := kernel.NewMatrix(stored, kernel.Arith{DType: hooks.BF16})
	if err != nil {
		t.Fatal(err)
	}
	m.In(bytes.NewReader(stored.Data[:len(stored.Data)-1]), 0)
	err = m.Mul(make([]float32, rows), make([]float32, cols), 1, nil)
	if runtime.GOARCH == "amd64" && !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want that the file ends", err)
	}
}

func TestMatrixRefusesWhatItCannotRead(t *testing.T) {
	a := kernel.Arith{DType: hooks.F32}
	for name, x := range map[string]hooks.Tensor{
		"rank 3":   {DType: hooks.F32, Shape: []int{1, 1, 1}, Data: make([]byte, 4)},
		"scalar":   {DType: hooks.F32, Data: make([]byte, 4)},
		"int64":    {DType: hooks.I64, Shape: []int{1}, Data: make([]byte, 8)},
		"too few":  {DType: hooks.F32, Shape: []int{2}, Data: make([]byte, 4)},
		"no dtype": {Shape: []int{1}, Data: make([]byte, 4)},
	} {
		if _, err := kernel.NewMatrix(x, a); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What torch 2.15 gives on a CPU: GELU in its tanh form, whose tail is as wrong as float32 makes it (exact is
// −0.00363739), and with the error function, SiLU, softcaps and the lowest numbers.
func TestConstants(t *testing.T) {
	f32 := kernel.Arith{DType: hooks.F32}
	one := func(op func(dst, x []float32), x float32) float64 {
		y := []float32{0}
		op(y, []float32{x})
		return float64(y[0])
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"gelu(-3)", one(f32.GELUTanh, -3), -0.00363743305},
		{"gelu(-1)", one(f32.GELUTanh, -1), -0.15880801},
		{"gelu(-0.5)", one(f32.GELUTanh, -0.5), -0.15428599},
		{"gelu(1)", one(f32.GELUTanh, 1), 0.84119199},
		{"gelu(3)", one(f32.GELUTanh, 3), 2.99636261},
		{"erf gelu(-0.5)", one(f32.GELU, -0.5), -0.154268786},
		{"erf gelu(1)", one(f32.GELU, 1), 0.841344714},
		{"erf gelu(20)", one(f32.GELU, 20), 20},
		{"silu(-8)", one(f32.SiLU, -8), -0.0026828011},
		{"silu(0.25)", one(f32.SiLU, 0.25), 0.140544131},
		{"silu(3)", one(f32.SiLU, 3), 2.85772252},
		{"quantile 0.95", float64(kernel.NormalQuantile(0.95)), 1.6448533535003662},
		{"quantile 0.5", float64(kernel.NormalQuantile(0.5)), 0},
		{"softcap 30 of 45", one(func(d, x []float32) { f32.Softcap(d, x, 30) }, 45), 27.1544476},
		{"softcap 50 of 60", one(func(d, x []float32) { f32.Softcap(d, x, 50) }, 60), 41.6827304},
	} {
		if !(math.Abs(c.got-c.want) <= 2e-7*math.Abs(c.want)) {
			t.Errorf("%s is %.9g, want %.9g", c.what, c.got, c.want)
		}
	}
	for dtype, want := range map[hooks.DType]float64{
		hooks.F32: -3.4028234663852886e38, hooks.BF16: -3.3895313892515355e38, hooks.F16: -65504,
	} {
		if got := float64(kernel.Arith{DType: dtype}.Lowest()); got != want {
			t.Errorf("the lowest %s is %g, want %g", dtype, got, want)
		}
	}
}

// Inverse frequencies of transformers 5.23 on a CPU with AVX2: default, and scaled as Llama 3 does with factor 8, 1, 4 and 8192 positions.
func TestFrequencies(t *testing.T) {
	local, global := kernel.InverseFrequencies(1e4, 256), kernel.InverseFrequencies(1e6, 256)
	llama := kernel.InverseFrequencies(5e5, 128)
	scaled := append([]float32(nil), llama...)
	kernel.ScaleLlama3(scaled, 8, 1, 4, 8192)
	linear := append([]float32(nil), llama...)
	kernel.ScaleLinear(linear, 8)
	for _, c := range []struct {
		what string
		got  float32
		want float32
	}{
		{"1e4 [1]", local[1], 0.93057203},
		{"1e4 [64]", local[64], 0.0099999998},
		{"1e4 [127]", local[127], 1.0746078e-4},
		{"1e6 [1]", global[1], 0.89768714},
		{"1e6 [64]", global[64], 0.0010000000},
		{"1e6 [127]", global[127], 1.1139739e-6},
		{"5e5 [30]", llama[30], 0.00213111954},
		{"llama3 [28]", scaled[28], 0.00321144611},
		{"llama3 [30]", scaled[30], 0.00137189368},
		{"llama3 [34]", scaled[34], 0.000178507791},
		{"llama3 [36]", scaled[36], 7.78465546e-05},
		{"linear [30]", linear[30], 0.00213111954 / 8},
	} {
		if c.got != c.want {
			t.Errorf("%s is %.9g, want %.9g", c.what, c.got, c.want)
		}
	}
}

// BenchmarkMul is a product of E2B's feed-forward size with bfloat16 weights.
func BenchmarkMul(b *testing.B) {
	const rows, cols = 8192, 2048
	m, err := kernel.NewMatrix(hooks.Tensor{DType: hooks.BF16, Shape: []int{rows, cols}, Data: make([]byte, 2*rows*cols)}, kernel.Arith{DType: hooks.BF16})
	if err != nil {
		b.Fatal(err)
	}
	for _, tokens := range []int{1, 4, 8, 32} {
		b.Run(fmt.Sprintf("T=%d", tokens), func(b *testing.B) {
			x, y := make([]float32, tokens*cols), make([]float32, tokens*rows)
			b.ReportAllocs()
			b.SetBytes(2 * rows * cols)
			for b.Loop() {
				product(b, m, y, x, tokens, nil)
			}
			b.ReportMetric(2*rows*cols*float64(tokens)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// BenchmarkAttention is one layer of E2B: a short prompt, a step of decoding, and a longer prompt.
func BenchmarkAttention(b *testing.B) {
	const heads, kv, d = 8, 2, 256
	a := kernel.Arith{DType: hooks.BF16}
	for _, c := range []struct{ tokens, keys int }{{4, 4}, {1, 512}, {64, 64}} {
		q, k, v := make([]float32, heads*c.tokens*d), make([]float32, kv*c.keys*d), make([]float32, kv*c.keys*d)
		tables := kernel.Tables{Cos: make([]float32, c.tokens*d), Sin: make([]float32, c.tokens*d)}
		n := kernel.Attention{Heads: heads, KV: kv, Tokens: c.tokens, Keys: c.keys, Dim: d}
		turned, scores, context := make([]float32, len(q)), make([]float32, heads*c.tokens*c.keys), make([]float32, len(q))
		size := fmt.Sprintf("T=%d,S=%d", c.tokens, c.keys)
		b.Run("Rotate/"+size, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.Rotate(turned, q, tables, c.tokens, heads, d)
			}
		})
		b.Run("Scores/"+size, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.Scores(scores, q, k, n)
			}
		})
		b.Run("Context/"+size, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.Context(context, scores, v, n)
			}
		})
	}
}
