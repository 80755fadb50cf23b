package isolate_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
)

// The order that is named is the engine's, not the last of those that are tried: rows of two values break the bound in each
// order in another way.
func TestOrderOfSummationIsNamed(t *testing.T) {
	const n, rows = 1 << 14, 64
	x, w := make([]float32, n), make([]float32, n*rows)
	for i := range x {
		x[i] = 0.1
	}
	for i := range w {
		w[i] = 0.3 + float32(i/n)/rows
		if i%n >= n/2 {
			w[i] *= 1.7
		}
	}
	for want, a := range map[string]testengine.Adder{
		"sequential": {Block: 1, Lanes: 1},
		"reversed":   {Block: 1, Lanes: 1, Reversed: true},
		"4 lanes":    {Block: 1, Lanes: 4, Tree: true},
		"8 lanes":    {Block: 1, Lanes: 8, Tree: true},
	} {
		y := make([]float32, rows)
		for k := range y {
			y[k] = a.Dot(0, x, w[k*n:][:n])
		}
		s := singles.Single{Op: op.Linear{}, In: []singles.Array{{Shape: []int{1, 1, n}, Data: x}}, W: []singles.Array{{Shape: []int{rows, n}, Data: w}}, Out: singles.Array{Shape: []int{1, 1, rows}, Data: y}, About: want}
		c := singles.CertifyAll(t, hooks.F32, isolate.Options{}, []singles.Single{s})[0]
		if c.Outcome != isolate.Rounding || c.Summation != want {
			t.Errorf("%s: %s, said to add %q; %d outside", want, c.Outcome, c.Summation, c.Outside)
		}
	}
}

// Where few elements of a product lie beyond their bounds, the columns that they are in are all that is added in the orders of engines: most
// are given by one of them, and one that is not stays outside, at its own place.
func TestFewElementsAreReplayed(t *testing.T) {
	const n, columns = 1 << 14, 30
	x, w := make([]float32, 2*n), make([]float32, n*columns)
	for i := range x {
		x[i] = 0.1
	}
	rng := rand.New(rand.NewPCG(9, 9))
	for i := range w {
		if w[i] = float32(rng.NormFloat64()); i/n%10 == 7 { // columns 7, 17 and 27 are of one value
			w[i] = 0.3 + float32(i/n)/columns
		}
	}
	y := make([]float32, 2*columns)
	for k := range y {
		y[k] = testengine.Adder{Block: 1, Lanes: 1}.Dot(0, x[k/columns*n:][:n], w[k%columns*n:][:n])
	}
	of := func(y []float32) *isolate.Certificate {
		s := singles.Single{Op: op.Linear{}, In: []singles.Array{{Shape: []int{2, n}, Data: x}}, W: []singles.Array{{Shape: []int{columns, n}, Data: w}}, Out: singles.Array{Shape: []int{2, columns}, Data: y}, Letter: "tc"}
		return singles.CertifyAll(t, hooks.F32, isolate.Options{}, []singles.Single{s})[0]
	}
	if c := of(y); c.Outcome != isolate.Rounding || c.Summation != "sequential" {
		t.Errorf("%s, said to add %q; %d outside, %v", c.Outcome, c.Summation, c.Outside, c.Set)
	}
	wrong := slices.Clone(y)
	wrong[columns+17] *= 1.0005 // what a bound of every order allows, and none of these gives
	if c := of(wrong); c.Outcome != isolate.Bug || c.Outside != 1 || !slices.ContainsFunc(c.Set, func(s string) bool { return strings.Contains(s, "17") }) {
		t.Errorf("one is wrong: %s, said to add %q; %d outside, %v", c.Outcome, c.Summation, c.Outside, c.Set)
	}
}
