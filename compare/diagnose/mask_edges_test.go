package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// A rule for the first or the last key of a query is read off the keys that the queries of a mask see, or that a softmax gives a weight.
func TestKeysByARuleAreNamed(t *testing.T) {
	mask := func(window int) operation {
		return operation{"mask.full", op.Mask{Window: window}, "bhts", []int{1, 1, 8, 8}, firstPositions(8), nil, nil}
	}
	softmax := operation{"layers.0.self_attn.probs_f32", op.Softmax{}, "bhts", []int{1, 2, 8, 8}, []program.Value{{Shape: []int{1, 2, 8, 8}, Data: wave(128, 1)}}, nil, nil}
	for _, c := range []struct {
		of   operation
		sees func(q, k int) bool
		kind diagnose.Kind
		says string
	}{
		{mask(0), func(q, k int) bool { return k <= q/3 }, "mask.last-key", "the last key that a query at position p attends to is p/3 rounded down"},
		{mask(0), func(q, k int) bool { return k <= q/2+1 && k <= q }, "mask.last-key", "the last key that a query at position p attends to is p/2 rounded down, plus 1"},
		{mask(0), func(q, k int) bool { return k <= q && k <= q/3*3 }, "mask.last-key", "the last key that a query at position p attends to is p rounded down to a multiple of 3"},
		{mask(0), func(q, k int) bool { return k <= q && k >= q/2 }, "mask.first-key", "the first key that a query at position p attends to is p/2 rounded down"},
		{mask(4), func(q, k int) bool { return k <= q && k >= q/2-1 }, "mask.first-key", "the first key that a query at position p attends to is p/2 rounded down, minus 1"},
		{softmax, func(_, k int) bool { return k < 5 }, "mask.last-key", "the last key that a query at position p attends to is 4"},
		{softmax, func(q, k int) bool { return k <= q }, "mask.last-key", "the last key that a query at position p attends to is p"},
		{softmax, func(q, k int) bool { return k >= q/2 }, "", ""},                                // a mask is causal by its rule
		{mask(0), func(q, k int) bool { return k <= q && (k != 2 || q%3 != 1) }, "", ""},          // a key is lost between others
		{mask(0), func(q, k int) bool { return k <= q-[]int{0, 0, 1, 1, 0, 3, 1, 5}[q] }, "", ""}, // no rule of two numbers
	} {
		m := model(t)
		m.Passes[0].Tokens = 8
		f := named(t, m, c.of.made(t, m, func(in [][]float64, y []float64) { attend(in[0], y, c.sees) }))
		if f.Mistake.Kind != c.kind || f.What != c.says {
			t.Errorf("%s: %q, want %s: %q", f.Key(), f.What, c.kind, c.says)
		}
	}
}

// attend makes masks, or softmaxes of scores, in which each of eight queries sees some of eight keys. Scores have more elements than positions.
func attend(in, y []float64, sees func(q, k int) bool) {
	for row := 0; row < len(y); row += 8 {
		sum := 0.0
		for k := range 8 {
			if i := row + k; len(in) < len(y) {
				y[i] = -math.MaxFloat32
				if sees(row/8%8, k) {
					y[i] = 0
				}
			} else if y[i] = 0; sees(row/8%8, k) {
				y[i] = math.Exp(in[i])
				sum += y[i]
			}
		}
		for k := range 8 {
			if sum > 0 {
				y[row+k] /= sum
			}
		}
	}
	rounded(y)
}

// A list of the wrong elements of a mask is no name for few elements.
func TestAFewElementsThatAreMaskedAreNoName(t *testing.T) {
	of := operation{"mask.full", op.Mask{}, "bhts", []int{1, 1, 8, 8}, firstPositions(8), nil, nil}
	for n, kind := range map[int]diagnose.Kind{1: "", 3: "", 4: "elements.minus-infinity"} {
		m := model(t)
		m.Passes[0].Tokens = 8
		f := named(t, m, of.made(t, m, func(_ [][]float64, y []float64) {
			for k := range n { // query 2k+1 does not see key k
				y[(2*k+1)*8+k] = math.Inf(-1)
			}
		}))
		if f.Relation.Kind != kind {
			t.Errorf("%d elements: %s", n, f.Key())
		}
	}
}

// A single wrong element of a mask is no rounding, so the mistake that gives it has a name.
func TestASingleWrongKeyIsNamed(t *testing.T) {
	of := operation{"mask.full", op.Mask{}, "bhts", []int{1, 1, 8, 8}, firstPositions(8), nil, nil}
	m := model(t)
	m.Passes[0].Tokens = 8
	f := named(t, m, of.made(t, m, func(in [][]float64, y []float64) {
		attend(in[0], y, func(q, k int) bool { return k <= q && k != 7 })
	}))
	if f.Key() != "mask.key-masked(place=mask,n=7)" || f.Shown != 1 {
		t.Errorf("%s, shown by %d elements", f.Key(), f.Shown)
	}
}
