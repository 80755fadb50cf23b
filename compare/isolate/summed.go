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

// summedBound bounds how far an entry that is the sum of the results of ranks may be from one that is computed at once, beside what rounds
// there. With p the results, n of them, u half a unit of their dtype and the order of the sum as [capture.Sum] has it:
//
//   - Each p is rounded: u·Σ|p|, and more where it is subnormal; see [capture.Sum].
//   - Of a linear operation with a bias b, one rank adds the bias to a product that was rounded before, which is |p|+|b| at most; so does
//     the computation at once, whose product is Σ|p|+|b| at most: u·(2·Σ|p| + 2·|b|).
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

// withRanks judges again what is left of an entry whose formula adds something to the sum of the results of ranks, such as a residual. A rank
// may add that to its own result before all results are added, so that the terms of both are added in any order; see [program.Terms].
// Where that explains some of it, the entry is judged so from here on.
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
