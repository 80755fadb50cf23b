package program_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/programtest"
)

// Arithmetics of the tests.
var (
	exact  = program.Arith{}
	single = program.Arith{DType: hooks.F32, Emulated: true}
	brain  = program.Arith{DType: hooks.BF16, Emulated: true}
)

// bounded is an arithmetic with bounds.
func bounded(a program.Arith) program.Arith {
	a.Bounds = true
	return a
}

// formula is an operation of a test.
type formula = programtest.Formula

// of is an operation on inputs alone.
func of(steps func(b *program.Builder, in []program.Var) program.Var) *formula {
	return programtest.Of(steps)
}

// matrix is a weight in memory.
type matrix struct {
	rows, cols int
	data       []float64
}

func (m matrix) Size() (int, int) { return m.rows, m.cols }

func (m matrix) Row(dst []float64, i int) error {
	if i < 0 || i >= m.rows || len(dst) != m.cols {
		return errors.New("no such row")
	}
	copy(dst, m.data[i*m.cols:])
	return nil
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func tensor(data []float64, shape ...int) program.Value {
	return programtest.Tensor(data, shape...)
}

// programOf is the program of an operation for a call.
func programOf(o op.Op, c program.Call) (*program.Program, error) {
	return programtest.Program(o, c)
}

func eval(t testing.TB, o op.Op, c program.Call) program.Value {
	t.Helper()
	v, err := program.Eval(o, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sameBits fails unless numbers are the same to the bit; any NaN is any other.
func sameBits(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, what string, got, want []float64,
) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, not %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: element %d is %v, not %v", what, i, got[i], want[i])
		}
	}
}

// f32 rounds to float32 and bf16 from there to bfloat16, by the bits: to nearest, ties to even.
func f32(x float64) float64 { return float64(float32(x)) }

func bf16(x float64) float64 {
	b := math.Float32bits(float32(x))
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	b += 0x7fff + b>>16&1
	return float64(math.Float32frombits(b &^ 0xffff))
}

// f16 rounds to float16, by its definition: a multiple of a power of two, eleven bits of it, none below 2^-24.
func f16(x float64) float64 {
	x = f32(x)
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	_, e := math.Frexp(x)
	unit := math.Ldexp(1, max(e-11, -24))
	if x = math.RoundToEven(x/unit) * unit; math.Abs(x) > 65504 {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return x
}

// numbers are some that a dtype has, of many sizes, from a seed.
func numbers(n int, seed uint64, round func(float64) float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		seed = seed*6364136223846793005 + 1442695040888963407
		u := float64(seed>>11)*0x1p-53 - 0.5
		x[i] = round(u * math.Exp2(float64(int(seed>>3%9))-4))
	}
	return x
}

func mapped(x []float64, f func(float64) float64) []float64 {
	y := slices.Clone(x)
	for i, v := range y {
		y[i] = f(v)
	}
	return y
}
