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

// Replay recomputes elements in engines' usual orders of summation. It returns the elements outside the range of
// these orders, and the name of the order explaining the others. Elements outside the rigorous bounds are not
// replayed.
func Replay(ctx context.Context, t *Trial, j *Judgement, a *Arithmetic, left []int) ([]int, string, error) {
	some := &Evidence{t, left}
	if t.Formula != nil && !t.edited && len(left) > 1 {
		if len(left) > manyLeft { // a count of all of them takes as long as a product
			if none, err := (&Evidence{t, left[:manyLeft]}).Focus().unexplained(ctx, t, a); none || err != nil {
				return left, "", err
			}
		}
		some = some.Focus()
	}
	if none, err := some.unexplained(ctx, t, a); none || err != nil {
		return left, "", err
	}
	all, err := t.Evaluate(ctx, Evaluation{Arithmetic: a, Rigorous: true})
	if err != nil {
		return nil, "", err
	}
	for _, i := range left {
		if !all.Consistent(i) {
			return left, "", nil
		}
	}
	if some.Trial != t {
		if part, err := some.Evaluate(ctx, Evaluation{Arithmetic: a}); err != nil {
			return nil, "", err
		} else if rest, _, err := inOrders(ctx, some.Trial, part, a, some.Left); err != nil || len(rest) > 0 {
			return left, "", err
		}
	}
	return replayRowsOf(ctx, t, j, a, left)
}

// manyLeft is how many elements are looked at first where more are left.
const manyLeft = 1 << 12

// unexplained reports whether a part of an entry has an element outside every order of summation; then the whole
// entry has such an element. It returns false if the part is the whole entry.
func (e *Evidence) unexplained(ctx context.Context, t *Trial, a *Arithmetic) (bool, error) {
	if e.Trial == t {
		return false, nil
	}
	j, err := e.Evaluate(ctx, Evaluation{Arithmetic: a, Rigorous: true})
	return err == nil && slices.ContainsFunc(e.Left, func(i int) bool { return !j.Consistent(i) }), err
}

// replayWork is the number of elements, or products, from which an entry is replayed only in the rows and columns
// of the elements left.
const replayWork = 1 << 16

// replayRowsOf is orders of the rows and columns that the elements are in, where these can be computed by themselves.
func replayRowsOf(ctx context.Context, t *Trial, j *Judgement, a *Arithmetic, left []int) ([]int, string, error) {
	if t.Formula == nil || t.edited {
		return inOrders(ctx, t, j, a, left)
	}
	some := (&Evidence{t, left}).FocusAbove(replayWork, len(left), len(left), true)
	if some.Trial == t || len(some.Left) != len(left) {
		return inOrders(ctx, t, j, a, left)
	}
	part, err := some.Evaluate(ctx, Evaluation{Arithmetic: a})
	if err != nil {
		return nil, "", err
	}
	rest, order, err := inOrders(ctx, some.Trial, part, a, some.Left)
	for k, i := range rest {
		rest[k] = left[slices.Index(some.Left, i)]
	}
	return rest, order, err
}

// inOrders removes the elements explained by orders of summation, each order on its own or several together.
func inOrders(ctx context.Context, t *Trial, j *Judgement, a *Arithmetic, left []int) ([]int, string, error) {
	first, best, most := left, "", given{}
	lo, hi := slices.Clone(j.X.Data), slices.Clone(j.X.Data)
	for _, s := range program.Summations() {
		k, err := t.Evaluate(ctx, Evaluation{Arithmetic: a, Sum: &s})
		if err != nil {
			return nil, "", err
		}
		if g := k.gives(first); g.more(most) {
			best, most = s.String(), g
		}
		var rest []int
		for _, i := range left {
			lo[i], hi[i] = min(lo[i], k.X.Data[i]-k.X.Bound[i]), max(hi[i], k.X.Data[i]+k.X.Bound[i])
			if y := t.Y.Data[i]; !(y >= floats.Round(t.DType, lo[i]) && y <= floats.Round(t.DType, hi[i])) {
				rest = append(rest, i)
			}
		}
		if left = rest; most.equal == len(first) {
			break
		}
	}
	return left, inOrder(best, most.within, len(first)-len(left)), nil
}

// given counts the elements explained by one order: within its bounds, and equal to the bit.
type given struct{ within, equal int }

func (g given) more(than given) bool {
	return g.within > than.within || g.within == than.within && g.equal > than.equal
}

// gives counts among some elements.
func (j *Judgement) gives(of []int) (g given) {
	for _, i := range of {
		if j.Consistent(i) {
			g.within++
		}
		if j.Y.Data[i] == j.Round(j.X.Data[i]) {
			g.equal++
		}
	}
	return g
}

// inOrder names the order of summation for the explained elements: the best order, if it explains most of them on
// its own.
func inOrder(best string, alone, explained int) string {
	switch {
	case explained == 0:
		return ""
	case 2*alone > explained:
		return best
	}
	return "several orders together"
}

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
