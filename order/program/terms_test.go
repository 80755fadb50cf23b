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
// It is not where the terms count as one.
func TestTermsAreAddedInAnyOrder(t *testing.T) {
	beyond := 0
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
		alone, err := p.Eval(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Together = true
		v, err := p.Eval(c)
		if err != nil {
			t.Fatal(err)
		}
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
		within := func(v program.Value) bool {
			return parts[0] >= floats.Round(d, v.Data[1]-v.Bound[1]) && parts[0] <= floats.Round(d, v.Data[1]+v.Bound[1])
		}
		if !within(v) {
			t.Fatalf("%s: %g in one order, %g with a bound of %g", d, parts[0], v.Data[1], v.Bound[1])
		}
		if !within(alone) {
			beyond++
		}
		if v.Data[1] != alone.Data[1] || v.Bound[0] != 0 || math.IsInf(v.Bound[1], 0) {
			t.Fatalf("%v with a bound of %v, and %v where the terms count as one", v.Data, v.Bound, alone.Data)
		}
	})
	if beyond == 0 {
		t.Error("no order gave anything that the terms as one do not")
	}
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
