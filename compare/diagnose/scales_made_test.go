package diagnose_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// unevenGrid is a weight whose rows and groups of columns are of different sizes. Some groups have no negative number.
func unevenGrid(w order.Weight) grid {
	g := gridOf(w)
	for i, row := range g {
		for j := range row {
			if (i+j/4)%5 == 0 {
				row[j] = math.Abs(row[j])
			}
			row[j] = f32(row[j] * []float64{1, 0.3, 0.8, 0.45, 1.7, 0.6, 1.25}[(3*i+5*(j/4)+i/8+len(w.Name))%7] * (1 + float64(i+j/4)/40))
		}
	}
	return g
}

// topOf is the largest absolute value of a block of a matrix.
func topOf(w grid, i, rows, j, cols int) (top float64) {
	for _, row := range w[i:min(i+rows, len(w))] {
		for _, x := range row[j : j+cols] {
			top = max(top, math.Abs(x))
		}
	}
	return top
}

// scaled multiplies each number of a matrix by the quotient of a wrong scale and the scale of its block.
func scaled(rows, cols int, wrong func(w grid, i, j int) float64) func(w grid) grid {
	return func(w grid) grid {
		return newGrid(24, 24, func(i, j int) float64 {
			return w[i][j] / topOf(w, i-i%rows, rows, j-j%cols, cols) * wrong(w, i-i%rows, j-j%cols)
		})
	}
}

// zeroed moves each number of a matrix by the steps between a wrong zero point and the zero point of its group.
func zeroed(most float64, wrong func(zero func(i, j int) float64, i, j int) float64) func(w grid) grid {
	return func(w grid) grid {
		ends := func(i, j int) (low, step float64) {
			j -= j % 4
			low, high := min(slices.Min(w[i][j:j+4]), 0), max(slices.Max(w[i][j:j+4]), 0)
			return low, f32(f32(high-low) / most)
		}
		zero := func(i, j int) float64 {
			low, step := ends(i, j)
			return math.RoundToEven(f32(-low / step))
		}
		return newGrid(24, 24, func(i, j int) float64 {
			_, step := ends(i, j)
			return w[i][j] + (zero(i, j)-wrong(zero, i, j))*step
		})
	}
}

// wrongScales are mistakes in the scales of a matrix with 24 rows and columns.
var wrongScales = []struct {
	diagnose.Mistake
	wrong func(w grid) grid
}{
	{diagnose.Mistake{Kind: "weight.scales-of-further", M: 1, N: 1}, scaled(1, 24, func(w grid, i, _ int) float64 { return topOf(w, (i+1)%24, 1, 0, 24) })},
	{diagnose.Mistake{Kind: "weight.scales-of-further", M: 1, K: 8, N: -1}, scaled(1, 8, func(w grid, i, j int) float64 {
		at := (i*3 + j/8 + 71) % 72
		return topOf(w, at/3, 1, at%3*8, 8)
	})},
	{diagnose.Mistake{Kind: "weight.scales-by-columns", M: 8, K: 8}, scaled(8, 8, func(w grid, i, j int) float64 { return topOf(w, j, 8, i, 8) })},
	{diagnose.Mistake{Kind: "weight.scales-by-columns", M: 1, K: 8}, scaled(1, 8, func(w grid, i, j int) float64 {
		at := j/8*24 + i
		return topOf(w, at/3, 1, at%3*8, 8)
	})},
	{diagnose.Mistake{Kind: "weight.scales-stored-by-columns", M: 1, K: 8}, scaled(1, 8, func(w grid, i, j int) float64 {
		at := i*3 + j/8
		return topOf(w, at%24, 1, at/24*8, 8)
	})},
	{diagnose.Mistake{Kind: "weight.scales-reversed", M: 1}, scaled(1, 24, func(w grid, i, _ int) float64 { return topOf(w, 23-i, 1, 0, 24) })},
	{diagnose.Mistake{Kind: "weight.scales-of-first", M: 1}, scaled(1, 24, func(w grid, _, _ int) float64 { return topOf(w, 0, 1, 0, 24) })},
	{diagnose.Mistake{Kind: "weight.scales-of-first", M: 1, K: 8, Axis: "column"}, scaled(1, 8, func(w grid, _, j int) float64 { return topOf(w, 0, 1, j, 8) })},
	{diagnose.Mistake{Kind: "weight.scales-of-first", M: 1, K: 8, Axis: "row"}, scaled(1, 8, func(w grid, i, _ int) float64 { return topOf(w, i, 1, 0, 8) })},
	{diagnose.Mistake{Kind: "weight.scales-of-other-size", M: 4, N: 3, Axis: "row"}, func(w grid) grid {
		return newGrid(24, 24, func(i, j int) float64 {
			return w[i][j] / topOf(w, i-i%4, 4, 0, 24) * topOf(w, min(i/3, 5)*4, 4, 0, 24)
		})
	}},
	{diagnose.Mistake{Kind: "weight.scales-of-other-size", M: 5, N: 4, Axis: "row"}, func(w grid) grid { // the last block is not full
		return newGrid(24, 24, func(i, j int) float64 {
			return w[i][j] / topOf(w, i-i%5, 5, 0, 24) * topOf(w, min(i/4, 4)*5, 5, 0, 24)
		})
	}},
	{diagnose.Mistake{Kind: "weight.scales-of-other-size", M: 1, K: 4, N: 8, Axis: "column"}, func(w grid) grid {
		return newGrid(24, 24, func(i, j int) float64 { return w[i][j] / topOf(w, i, 1, j-j%4, 4) * topOf(w, i, 1, j/8*4, 4) })
	}},
	{diagnose.Mistake{Kind: "weight.scales-in-turn", M: 1, N: 2, Axis: "row"}, scaled(1, 24, func(w grid, i, _ int) float64 {
		return topOf(w, i-i%8+[]int{0, 4, 1, 5, 2, 6, 3, 7}[i%8], 1, 0, 24)
	})},
	{diagnose.Mistake{Kind: "weight.scales-of-neighbours", M: 1, K: 12, Axis: "column"}, scaled(1, 12, func(w grid, i, j int) float64 { return topOf(w, i, 1, 12-j, 12) })},
	{diagnose.Mistake{Kind: "weight.scales-of-neighbours", M: 1, Axis: "row"}, scaled(1, 24, func(w grid, i, _ int) float64 { return topOf(w, i^1, 1, 0, 24) })},
	{diagnose.Mistake{Kind: "weight.scales-of-another", M: 1, By: diagnose.Term{Kind: diagnose.Weight, Name: "layers.*.self_attn.o_proj.weight"}, Source: "layers.0.self_attn.o_proj.weight"}, scaled(1, 24, func(_ grid, i, _ int) float64 {
		return topOf(unevenGrid(order.Weight{Name: "layers.1.self_attn.o_proj.weight", Shape: []int{24, 24}}), i, 1, 0, 24)
	})},
	{diagnose.Mistake{Kind: "weight.scales-of-another", By: diagnose.Term{Kind: diagnose.Weight, Name: "layers.*.mlp.up_proj.weight"}, Source: "layers.0.mlp.up_proj.weight"}, scaled(24, 24, func(grid, int, int) float64 {
		return topOf(unevenGrid(order.Weight{Name: "layers.1.mlp.up_proj.weight", Shape: []int{44, 24}}), 0, 44, 0, 24)
	})},
	{diagnose.Mistake{Kind: "weight.scales-unused", M: 1, N: 127}, scaled(1, 24, func(grid, int, int) float64 { return 127 })},
	{diagnose.Mistake{Kind: "weight.scales-squared", M: 1, K: 8, N: 7}, scaled(1, 8, func(w grid, i, j int) float64 { return topOf(w, i, 1, j, 8) * topOf(w, i, 1, j, 8) / 7 })},
	{diagnose.Mistake{Kind: "weight.scales-inverted", M: 1, N: 127}, scaled(1, 24, func(w grid, i, _ int) float64 { return 127 * 127 / topOf(w, i, 1, 0, 24) })},
	{diagnose.Mistake{Kind: "weight.scales-rounded", M: 1, N: 127, DType: hooks.BF16}, scaled(1, 24, func(w grid, i, _ int) float64 {
		step := topOf(w, i, 1, 0, 24) / 127
		unit := math.Exp2(math.Floor(math.Log2(step)) - 7)
		return math.RoundToEven(step/unit) * unit * 127
	})},
	{diagnose.Mistake{Kind: "weight.scales-of-all", M: 1, K: 8}, scaled(1, 8, func(w grid, _, _ int) float64 { return topOf(w, 0, 24, 0, 24) })},
	{diagnose.Mistake{Kind: "weight.scales-cut", M: 1, K: 8, X: diagnose.Number{Value: 15. / 63, Has: true}}, scaled(1, 8, func(w grid, i, j int) float64 {
		return min(topOf(w, i, 1, j, 8), topOf(w, 0, 24, 0, 24)*15/63)
	})},
	{diagnose.Mistake{Kind: "weight.scales-raised", M: 1, K: 8, X: diagnose.Number{Value: 1. / 3, Has: true}}, scaled(1, 8, func(w grid, i, j int) float64 {
		return max(topOf(w, i, 1, j, 8), topOf(w, 0, 24, 0, 24)/3)
	})},
	{diagnose.Mistake{Kind: "weight.scales-as-codes", M: 1, N: 2}, scaled(1, 24, func(w grid, i, _ int) float64 {
		top := topOf(w, i, 1, 0, 24)
		e := math.Floor(math.Log2(top)) - 2
		return top / math.Exp2(e) * (e + 127)
	})},
	{diagnose.Mistake{Kind: "weight.zero-points-wrapped", M: 1, K: 4, Coding: diagnose.Coding{Numbers: diagnose.Int4Kept}}, zeroed(15, func(zero func(i, j int) float64, i, j int) float64 {
		if z := zero(i, j); z != 0 {
			return z
		}
		return 15
	})},
	{diagnose.Mistake{Kind: "weight.zero-points-all", M: 1, K: 4, N: 8, Coding: diagnose.Coding{Numbers: diagnose.Int4Kept}}, zeroed(15, func(func(i, j int) float64, int, int) float64 { return 8 })},
	{diagnose.Mistake{Kind: "weight.scales-of-further", M: 1, K: 4, N: 6, Coding: diagnose.Coding{Numbers: diagnose.Int4Kept}}, zeroed(15, func(zero func(i, j int) float64, i, j int) float64 { return zero((i+1)%24, j) })},
}

// uneven is a model with uneven weights, and its query projection.
func uneven(t *testing.T) (*diagnose.Model, *diagnose.Entry) {
	t.Helper()
	m := weighted(t)
	m.Weights = func(w order.Weight) (program.Rows, error) { return unevenGrid(w), nil }
	e := rightEntry(t, m, query)
	for k, w := range e.Weights {
		e.Call.W[k] = unevenGrid(w)
	}
	return m, e
}

// A mistake in scales makes of a weight what plain loops make, and a search finds it by its numbers.
func TestMistakesOfScales(t *testing.T) {
	for _, c := range wrongScales {
		m, e := uneven(t)
		w, bias := unevenGrid(e.Weights[0]), unevenGrid(e.Weights[1])[0]
		c.Place, c.Of = wq, diagnose.Term{Kind: diagnose.Weight, Name: wq}
		want, key := linear(e.Call.In[0].Data, c.wrong(w), bias), c.Key()
		if !alike(appliedTo(t, m, e, c.Mistake), want) {
			t.Errorf("%s: other values than those of plain loops", key)
		}
		if alike(linear(e.Call.In[0].Data, w, bias), want) {
			t.Errorf("%s: the values of the right weight", key)
		}
		m, e = uneven(t)
		if got := found(t, m, e, want).Key(); got != key {
			t.Errorf("%s is found as %q", key, got)
		}
	}
}

// Factors of blocks that are no scales have no name of scales, and a factor nearly of another row's scale has none.
func TestFactorsThatAreNoScales(t *testing.T) {
	for name, wrong := range map[string]func(w grid) grid{
		"factors of their own": scaled(1, 8, func(w grid, i, j int) float64 { return topOf(w, i, 1, j, 8) * (1 + float64((7*i+j)%11)/13) }),
		"nearly the next row's": scaled(1, 24, func(w grid, i, _ int) float64 {
			return topOf(w, (i+1)%24, 1, 0, 24) * (1 + float64(i%3)/400)
		}),
		"nearly cut off":          scaled(1, 8, func(w grid, i, j int) float64 { return min(topOf(w, i, 1, j, 8), 0.2*(1+float64(i%3)/300)) }),
		"a zero point and a half": zeroed(15, func(zero func(i, j int) float64, i, j int) float64 { return zero((i+1)%24, j) + 0.5 }),
	} {
		m, e := uneven(t)
		y := linear(e.Call.In[0].Data, wrong(unevenGrid(e.Weights[0])), unevenGrid(e.Weights[1])[0])
		if f := found(t, m, e, y); f.Kind != "" {
			t.Errorf("%s: %s is found", name, f.Key())
		}
	}
}
