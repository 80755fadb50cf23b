package isolate

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// summedBound bounds the distance between an entry summed from the results of ranks and the same entry computed at
// once, apart from the rounding of the latter. With the n results p, half a unit u of their dtype, and the order of
// the sum as in [capture.Sum]:
//
//   - Each p is rounded: u·Σ|p|, and more for subnormal p; see [capture.Sum].
//   - In a linear operation with a bias b, one rank adds the bias to a rounded product of at most |p|+|b|; the computation at once adds it to
//     a product of at most Σ|p|+|b|: u·(2·Σ|p| + 2·|b|).
func summedBound(i *Isolator, n order.Node) ([]float64, error) {
	e := i.list.At(n)
	rec, _ := i.trace.Lookup(n.Pass, e.Name)
	s, err := i.trace.Summed(rec)
	if err != nil {
		return nil, err
	}
	bound := s.Order
	for k, e := range s.Rounded {
		bound[k] += e
	}
	o, linear := e.Op.(op.Linear)
	if !linear || !o.Bias || len(e.Weights) < 2 {
		return bound, nil
	}
	rows, err := i.env.Weights(e.Weights[1])
	if err != nil {
		return nil, err
	}
	_, width := rows.Size()
	bias := make([]float64, width)
	if err := rows.Row(bias, 0); err != nil {
		return nil, err
	}
	for k, sum := range s.Magnitude {
		if sum > 0 && width > 0 {
			bound[k] += 2 * floats.RoundingError(s.Held, sum+math.Abs(bias[k%width]))
		}
	}
	return bound, nil
}

// withRanks judges the unexplained elements again, for a formula with an addition to the sum of the ranks' results,
// such as a residual. A rank may add the residual to its own result before the sum over ranks, so the terms of both
// sums may be added in any order; see [program.Terms]. If this explains some element, later judgements of the entry
// use it too.
func withRanks(ctx context.Context, t *Trial, a *Arithmetic, left []int) ([]int, string, error) {
	if t.mixed || !slices.ContainsFunc(t.Call.In, func(v program.Value) bool { return v.Terms != nil }) {
		return left, "", nil
	}
	t.mixed = true
	j, err := t.Evaluate(ctx, Evaluation{Arithmetic: a})
	if err != nil {
		return nil, "", err
	}
	rest := slices.DeleteFunc(slices.Clone(left), j.Consistent)
	if len(rest) == len(left) {
		t.mixed = false
		return left, "", nil
	}
	return rest, "the results of ranks together with what is added to them", nil
}
