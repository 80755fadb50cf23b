package compare_test

import (
	"testing"

	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
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
	for want, a := range map[string]adder{
		"sequential": {block: 1, lanes: 1},
		"reversed":   {block: 1, lanes: 1, reversed: true},
		"4 lanes":    {block: 1, lanes: 4, tree: true},
		"8 lanes":    {block: 1, lanes: 8, tree: true},
	} {
		y := make([]float32, rows)
		for k := range y {
			y[k] = a.dot(0, x, w[k*n:][:n])
		}
		s := single{op: op.Linear{}, in: []array{{[]int{1, 1, n}, x}}, w: []array{{[]int{rows, n}, w}}, out: array{[]int{1, 1, rows}, y}, about: want}
		c := certifyAll(t, hooks.F32, certify.IsolateOptions{}, []single{s})[0]
		if c.Outcome != certify.Rounding || c.Summation != want {
			t.Errorf("%s: %s, said to add %q; %d outside", want, c.Outcome, c.Summation, c.Outside)
		}
	}
}
