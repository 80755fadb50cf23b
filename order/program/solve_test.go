package program_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// systems is a program of triangular systems of n equations with c columns.
func systems(t rapid.TB, n, c int, unit bool) *program.Program {
	b := program.NewBuilder()
	p, err := b.Program(b.Solve("solution", b.Input(0, []int{1, n, n}), b.Input(1, []int{1, n, c}), unit))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// byRows and byColumns solve a system in float32: a row is a sum, or each solution is taken off all rows behind it. Both divide by the diagonal, or multiply by
// its reciprocal.
func byRows(l, b []float32, n, c int, divide func(x, d float32) float32) []float32 {
	x := make([]float32, len(b))
	for i := range n {
		for k := range c {
			sum := float32(0)
			for j := range i {
				sum += l[i*n+j] * x[j*c+k]
			}
			x[i*c+k] = divide(b[i*c+k]-sum, l[i*n+i])
		}
	}
	return x
}

func byColumns(l, b []float32, n, c int, divide func(x, d float32) float32) []float32 {
	x := append([]float32(nil), b...)
	for j := range n {
		for k := range c {
			x[j*c+k] = divide(x[j*c+k], l[j*n+j])
			for i := j + 1; i < n; i++ {
				x[i*c+k] -= float32(l[i*n+j] * x[j*c+k])
			}
		}
	}
	return x
}

// Solvers go by rows or by columns, and divide or multiply by reciprocals: the bound holds what each of them gives.
func TestSolversAreWithinTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, c := rapid.IntRange(1, 64).Draw(t, "n"), rapid.IntRange(1, 4).Draw(t, "c")
		unit, size := rapid.Bool().Draw(t, "unit"), math.Exp2(float64(-rapid.IntRange(1, 10).Draw(t, "size")))
		solvedWithin(t, n, c, unit, size, true, rapid.Uint64().Draw(t, "seed"))
	})
	for seed := range uint64(20) { // the bound of nearly every order, where b is far larger than what is taken off it
		solvedWithin(t, 64, 1, true, 0x1p-10, false, seed)
	}
}

// solvedWithin holds a system of numbers of some size, beside a diagonal near 1, to what solvers give.
func solvedWithin(t rapid.TB, n, c int, unit bool, size float64, rigorous bool, seed uint64) {
	l := numbers(n*n, seed, func(v float64) float64 { return f32(v * size) })
	for i := range n {
		l[i*n+i] = f32(1 + l[i*n+i])
	}
	x := numbers(n*c, seed+1, f32)
	arith := program.Arith{DType: hooks.F32, Emulated: true, Bounds: true, Rigorous: rigorous}
	v, err := systems(t, n, c, unit).Eval(program.Call{In: []program.Value{tensor(l, 1, n, n), tensor(x, 1, n, c)}, Arith: arith})
	if err != nil {
		t.Fatal(err)
	}
	for way, divide := range map[string]func(x, d float32) float32{
		"dividing":       func(x, d float32) float32 { return x / d },
		"by reciprocals": func(x, d float32) float32 { return x * (1 / d) },
		"unit":           func(x, _ float32) float32 { return x },
	} {
		if (way == "unit") != unit {
			continue
		}
		for order, got := range map[string][]float32{"rows": byRows(narrow(l), narrow(x), n, c, divide), "columns": byColumns(narrow(l), narrow(x), n, c, divide)} {
			for i, y := range got {
				if !(math.Abs(float64(y)-v.Data[i]) <= v.Bound[i]) {
					t.Fatalf("%s %s: element %d is %v, want %v ± %v", order, way, i, y, v.Data[i], v.Bound[i])
				}
			}
		}
	}
}

func narrow(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// A rounding point behind a solution rounds it when all rows are there, and a place where an engine may round is one in the first row, too.
func TestASolutionIsRoundedBehindIt(t *testing.T) {
	b := program.NewBuilder()
	solved := b.Solve("solution", b.Input(0, []int{1, 2, 2}), b.Input(1, []int{1, 2, 1}), true)
	p, err := b.Program(b.R(solved))
	if err != nil {
		t.Fatal(err)
	}
	l, x := []float64{1, 0, -1, 1}, []float64{1 + 0x1p-9, 0x1p-9 + 0x1p-10}
	call := program.Call{In: []program.Value{tensor(l, 1, 2, 2), tensor(x, 1, 2, 1)}, Arith: program.Arith{DType: hooks.BF16, Emulated: true}}
	v, err := p.Eval(call)
	if err != nil || v.Data[0] != 1 || v.Data[1] != 1+0x1p-7 {
		t.Errorf("%v, %v", v.Data, err)
	}
	q := systems(t, 2, 1, true)
	call.Choices = q.Own()
	call.Choices[len(q.Steps)-1].Round = program.Model
	if v, err = q.Eval(call); err != nil || v.Data[0] != 1 || v.Data[1] != 1 {
		t.Errorf("rounded row by row: %v, %v", v.Data, err)
	}
}

// A view without elements stays what it is where padding goes.
func TestPaddingBesideNothing(t *testing.T) {
	b := program.NewBuilder()
	x := b.Input(0, []int{1, 2, 3})
	padded := b.Cat(1, x, b.Expand(b.Literal(0), []int{1, 98, 3}))
	y := b.Mul("square", padded, padded)
	p, err := b.Program(b.Cat(1, b.Slice(y, 1, 50, 50), b.Slice(y, 1, 0, 2)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Eval(program.Call{In: []program.Value{tensor([]float64{1, 2, 3, 4, 5, 6}, 1, 2, 3)}})
	if err != nil || fmt.Sprint(v.Data) != "[1 4 9 16 25 36]" {
		t.Errorf("%v, %v", v.Data, err)
	}
}
