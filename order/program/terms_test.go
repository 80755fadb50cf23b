package program_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// The terms of a sum, and what a step adds to it, may be added in any order, each step rounded: what that gives is within the bound of the step.
func TestTermsAreAddedInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]hooks.DType{hooks.F32, hooks.BF16}).Draw(t, "dtype")
		draw := func(name string) sum {
			parts, s := []float64{}, sum{terms: &program.Terms{Count: make([]int, 2), Most: make([]float64, 2), Unit: floats.Unit(d)}}
			for range rapid.IntRange(1, 5).Draw(t, name) {
				x := rapid.Float64Range(-4, 4).Draw(t, "x") * rapid.SampledFrom([]float64{0, 1, 1, 0x1p-9, 0x1p-126, 0x1p-136}).Draw(t, "scale")
				parts = append(parts, floats.Round(d, x))
			}
			whole, above, below := 0.0, 0.0, 0.0
			for _, x := range parts {
				if x != 0 {
					s.terms.Count[1]++
				}
				whole, above, below = whole+x, above+max(x, 0), below-min(x, 0)
			}
			s.terms.Most[1] = max(above, below)
			s.parts, s.rounded = parts, floats.Round(d, whole)
			return s
		}
		a, b := draw("a"), draw("b")
		if rapid.Bool().Draw(t, "the other is no sum") {
			b = sum{parts: []float64{b.rounded}, rounded: b.rounded}
		}
		build := program.NewBuilder()
		x, y := build.Input(0, []int{2}), build.Input(1, []int{2})
		if rapid.Bool().Draw(t, "exchanged") {
			x, y = y, x
		}
		p, err := build.Program(build.Add("sum", x, y))
		if err != nil {
			t.Fatal(err)
		}
		c := program.Call{Arith: program.Arith{DType: d, Emulated: true, Bounds: true}, In: []program.Value{a.value(), b.value()}}
		alone, v := onceAndTogether(t, p, c)
		parts := append(append([]float64{}, a.parts...), b.parts...)
		flushes := rapid.Bool().Draw(t, "flushes")
		for len(parts) > 1 { // any two become their sum
			i := rapid.IntRange(1, len(parts)-1).Draw(t, "i")
			j := rapid.IntRange(0, i-1).Draw(t, "j")
			if parts[j] = floats.Round(d, parts[i]+parts[j]); flushes && math.Abs(parts[j]) < 0x1p-126 {
				parts[j] = 0
			}
			parts = append(parts[:i], parts[i+1:]...)
		}
		if !contains(d, v, parts[0]) {
			t.Fatalf("%s: %g in one order, %g with a bound of %g", d, parts[0], v.Data[1], v.Bound[1])
		}
		if v.Data[1] != alone.Data[1] || v.Bound[0] != 0 || math.IsInf(v.Bound[1], 0) {
			t.Fatalf("%v with a bound of %v, and %v where the terms count as one", v.Data, v.Bound, alone.Data)
		}
	})
}

// Terms that count as one have one order: what another order gives is not within their bound. In bfloat16 1 + 2^-8 + 2^-8 is 1 from the left,
// and 1 + 2^-7 from the right.
func TestTermsAsOneHaveOneOrder(t *testing.T) {
	a := sum{parts: []float64{1, 0x1p-8, 0x1p-8}, rounded: 1 + 0x1p-7, terms: &program.Terms{
		Count: []int{0, 3}, Most: []float64{0, 1 + 0x1p-7}, Unit: floats.Unit(hooks.BF16),
	}}
	b := sum{parts: []float64{-1}, rounded: -1}
	build := program.NewBuilder()
	p, err := build.Program(build.Add("sum", build.Input(0, []int{2}), build.Input(1, []int{2})))
	if err != nil {
		t.Fatal(err)
	}
	alone, together := onceAndTogether(t, p, program.Call{
		Arith: program.Arith{DType: hooks.BF16, Emulated: true, Bounds: true}, In: []program.Value{a.value(), b.value()},
	})
	const other = 0 // ((1 + 2^-8) + 2^-8) - 1, where 1 + 2^-8 is 1
	if contains(hooks.BF16, alone, other) || !contains(hooks.BF16, together, other) {
		t.Errorf("%v is to be within %v, and not within %v", other, together, alone)
	}
}

// onceAndTogether evaluates a sum with the terms of its operands counted as one, and with all of them in any order.
func onceAndTogether(t rapid.TB, p *program.Program, c program.Call) (alone, together program.Value) {
	t.Helper()
	alone, err := p.Eval(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Together = true
	if together, err = p.Eval(c); err != nil {
		t.Fatal(err)
	}
	return alone, together
}

// contains reports whether x is within the bound of the second element of v, rounded to d.
func contains(d hooks.DType, v program.Value, x float64) bool {
	return x >= floats.Round(d, v.Data[1]-v.Bound[1]) && x <= floats.Round(d, v.Data[1]+v.Bound[1])
}

// sum is a drawn operand: its terms, and what they are together. The element before it is 0.
type sum struct {
	parts   []float64
	rounded float64
	terms   *program.Terms
}

func (s sum) value() program.Value {
	return program.Value{Shape: []int{2}, Data: []float64{0, s.rounded}, Bound: make([]float64, 2), Terms: s.terms}
}
