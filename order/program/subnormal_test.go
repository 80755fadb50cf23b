package program_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// vectorUnit computes in float32 as a vector unit does that takes subnormal results for zero, or one that keeps them.
type vectorUnit struct{ flushes bool }

func (u vectorUnit) number(x float64) float64 {
	if x = float64(float32(x)); u.flushes && math.Abs(x) < 0x1p-126 {
		return 0
	}
	return x
}

// dot adds products one after the other, or fused with the sum.
func (u vectorUnit) dot(x, y []float64, fused bool) float64 {
	sum := 0.0
	for i, v := range x {
		if fused {
			sum = u.number(math.FMA(v, y[i], sum))
		} else {
			sum = u.number(sum + u.number(v*y[i]))
		}
	}
	return sum
}

// Bounds hold among numbers so small that float32 has them with few digits, or not at all, for engines that keep them and for those that take
// them for zero.
func TestBoundsHoldBelowTheNormalNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		row := func(name string) []float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = float64(float32(math.Ldexp(rapid.Float64Range(-4, 4).Draw(t, name), rapid.SampledFrom([]int{-150, -140, -128, -100, -64, -62, -30, 0}).Draw(t, "exponent of "+name))))
			}
			return x
		}
		x, y := row("x"), row("y")
		u := vectorUnit{rapid.Bool().Draw(t, "flushes")}
		fused := rapid.Bool().Draw(t, "fused")
		by := func(f func(a, b float64) float64) []float64 {
			out := make([]float64, n)
			for i := range out {
				out[i] = u.number(f(x[i], y[i]))
			}
			return out
		}
		c := program.Call{Arith: bounded(single), In: []program.Value{tensor(x, 1, n), tensor(y, 1, n)}, Shape: []int{1, n}}
		for name, a := range map[string]struct {
			op   program.Op
			got  []float64
			last int
			w    []program.Rows
		}{
			"add":    {of(func(b *program.Builder, in []program.Var) program.Var { return b.Add("s", in[0], in[1]) }), by(func(a, b float64) float64 { return a + b }), n, nil},
			"mul":    {of(func(b *program.Builder, in []program.Var) program.Var { return b.Mul("s", in[0], in[1]) }), by(func(a, b float64) float64 { return a * b }), n, nil},
			"sum":    {of(func(b *program.Builder, in []program.Var) program.Var { return b.Sum("s", b.Mul("p", in[0], in[1])) }), []float64{u.dot(x, y, false)}, 1, nil},
			"dot":    {of(func(b *program.Builder, in []program.Var) program.Var { return b.Dot("s", "bk,ck->bc", in[0], in[1]) }), []float64{u.dot(x, y, fused)}, 1, nil},
			"linear": {op.Linear{}, []float64{u.dot(x, y, fused)}, 1, []program.Rows{matrix{1, n, y}}},
		} {
			c := c
			if c.Shape = []int{1, a.last}; a.w != nil {
				c.In, c.W = c.In[:1], a.w
			}
			for _, rigorous := range []bool{false, true} {
				c.Rigorous = rigorous
				p, err := programOf(a.op, c)
				if err != nil {
					t.Fatal(err)
				}
				v, err := p.Eval(c)
				if err != nil {
					t.Fatal(err)
				}
				for i, got := range a.got {
					if !(math.Abs(got-v.Data[i]) <= v.Bound[i]) {
						t.Fatalf("%s, rigorous %t: element %d is %g, which is %g from %g: the bound is %g", name, rigorous, i, got, got-v.Data[i], v.Data[i], v.Bound[i])
					}
				}
			}
		}
	})
}

// A sum that is zero since its terms are has no bound: nothing was rounded.
func TestZeroHasNoBound(t *testing.T) {
	zero := tensor([]float64{0, 0, 0}, 1, 3)
	c := program.Call{Arith: bounded(single), In: []program.Value{zero, tensor([]float64{1, 2, 3}, 1, 3)}, Shape: []int{1, 1}}
	p, err := programOf(of(func(b *program.Builder, in []program.Var) program.Var { return b.Dot("s", "bk,ck->bc", in[0], in[1]) }), c)
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Eval(c)
	if err != nil || v.Data[0] != 0 || v.Bound[0] != 0 {
		t.Errorf("%v, bound %v, %v", v.Data, v.Bound, err)
	}
}

// In float16 the reciprocal of a number above 2^14 is subnormal: a quotient by way of it is off by more than a unit.
func TestHullOfASubnormalReciprocal(t *testing.T) {
	const x, y = 30000.0, 60000.0
	reciprocal := 0x1p-24 * math.RoundToEven(1/y*0x1p24)
	c := program.Call{
		Arith: program.Arith{DType: hooks.F16, Emulated: true, Bounds: true, Hull: true},
		In:    []program.Value{tensor([]float64{x}, 1, 1), tensor([]float64{y}, 1, 1)}, Shape: []int{1, 1},
	}
	p, err := programOf(of(func(b *program.Builder, in []program.Var) program.Var { return b.Div("s", in[0], in[1]) }), c)
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Eval(c)
	if got := x * reciprocal; err != nil || !(math.Abs(got-v.Data[0]) <= v.Bound[0]) {
		t.Errorf("%g is %g from %g: the bound is %g, %v", got, got-v.Data[0], v.Data[0], v.Bound[0], err)
	}
}
