package isolate

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Evidence is one entry of a form.
type Evidence struct {
	*Trial
	Left []int // what transformers' arithmetic does not explain
}

// RowsIn counts the rows in which some elements, which ascend, lie.
func RowsIn(t *Trial, at []int) int {
	width := 1
	if n := len(t.Y.Shape); n > 0 {
		width = max(t.Y.Shape[n-1], 1)
	}
	n, last := 0, -1
	for _, i := range at {
		if row := i / width; row != last {
			n, last = n+1, row
		}
	}
	return n
}

// InHull reports whether some choice of roundings gives each element, in one of the orders of steps.
func (e *Evidence) InHull(ctx context.Context) (bool, error) {
	_, left, err := Hull(ctx, e.Trial, e.Left)
	return len(left) == 0, err
}

// Hull takes out of some elements what some choice of roundings gives, in one of the orders of steps, and judges by the last of
// these.
func Hull(ctx context.Context, t *Trial, left []int) (j *Judgement, rest []int, err error) {
	all, err := t.Rewrites()
	if err != nil {
		return nil, nil, err
	}
	for _, r := range all {
		if j, err = t.Evaluate(ctx, Evaluation{Arithmetic: &Arithmetic{Rewrites: r}, Hull: true}); err != nil {
			return nil, nil, err
		}
		left = slices.DeleteFunc(slices.Clone(left), func(i int) bool { return j.Consistent(i) })
	}
	return j, left, nil
}

// Only lists the elements equal to the bit in one order of additions (j) and unequal in the order of k, for
// elements with a bound of 0 in j.
func (j *Judgement) Only(k *Judgement) (at []int) {
	for i, y := range j.Y.Data {
		if j.X.Bound[i] == 0 && y == j.Round(j.X.Data[i]) && y != k.Round(k.X.Data[i]) {
			at = append(at, i)
		}
	}
	return at
}

// Definite reports whether an element is known to a quarter of a unit of the model's dtype. In float32 nothing is rounded to
// less than what bounds are made of.
func (j *Judgement) Definite(i int) bool {
	if x := j.X.Data[i]; x-x != 0 {
		return true
	} else if j.Model == hooks.F32 {
		return !math.IsInf(j.X.Bound[i], 0)
	}
	return j.X.Bound[i] <= LastPlace(j.Model, j.X.Data[i])/4
}

// Apart reports whether two arithmetics give an element no number in common. Where their bounds overlap, what one explains and the
// other does not is a matter of the bounds. In 16 bits a number is an interval of what it was rounded from, and bounds are narrow.
func (j *Judgement) Apart(own *Judgement, i int) bool {
	if x := j.X.Data[i]; j.Model != hooks.F32 || x-x != 0 && own.X.Data[i]-own.X.Data[i] == 0 {
		return true
	}
	return j.Disjoint(own, i)
}

// Disjoint reports whether the intervals that two arithmetics give an element do not overlap, their ends rounded.
func (j *Judgement) Disjoint(own *Judgement, i int) bool {
	to := func(k *Judgement, sign float64) float64 { return k.Round(k.X.Data[i] + sign*k.X.Bound[i]) }
	return to(j, 1) < to(own, -1) || to(j, -1) > to(own, 1)
}

// captured lists the entries of a trace that can be computed from other entries, by form.
type captured struct {
	once  sync.Once
	Names []FormKey // of the forms, in the order of the trace
	Nodes map[FormKey][]order.Node
}

// CapturedForms are the captured entries, worked out once.
func (i *Isolator) CapturedForms() *captured {
	c := &i.captured
	c.once.Do(func() {
		c.Nodes = map[FormKey][]order.Node{}
		for _, r := range i.trace.Records() {
			n := order.Node{Entry: i.list.Index(r.Name), Pass: r.Pass}
			if n.Entry < 0 || r.Firing != 0 || n.Pass >= len(i.env.Passes) || !i.Has(n) {
				continue
			}
			cut, err := i.list.Cut(i.Has, n)
			if err != nil { // what it is made of was not captured
				continue
			}
			name := i.FormOf(cut, n)
			if c.Nodes[name] == nil {
				c.Names = append(c.Names, name)
			}
			c.Nodes[name] = append(c.Nodes[name], n)
		}
	})
	return c
}

// Evidence returns an entry and its elements unexplained by transformers' arithmetic. It returns nil for an entry
// without a formula from captured tensors, and for position_ids that are assumed. For a large entry the evidence covers a few tokens: see partOf.
func (i *Isolator) Evidence(ctx context.Context, n order.Node) (*Evidence, error) {
	if i.assumed(n) {
		return nil, nil
	}
	t, err := partOf(ctx, i, n)
	if t == nil && err == nil {
		t, err = i.Trial(n)
	}
	if Lacking(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if right, err := rightInQueries(ctx, t); right || err != nil {
		return &Evidence{t, nil}, errors.Join(err, t.Prepare(ctx))
	}
	_, left, _, err := t.Judge(ctx, &Arithmetic{})
	if err != nil || t.Formula == nil {
		return nil, err
	}
	return &Evidence{t, left}, nil
}

// Shows reports whether an entry has a finite element, or one that transformers' arithmetic leaves. NaN is NaN in every arithmetic: an entry of NaN would only take
// the place of an entry that shows something, and few entries of a form are looked at.
func (e *Evidence) Shows() bool {
	return len(e.Left) > 0 || slices.ContainsFunc(e.Y.Data, func(y float64) bool { return !math.IsNaN(y) && !math.IsInf(y, 0) })
}

// Lacking reports whether an error says that an entry cannot be computed from what was captured.
func Lacking(err error) bool {
	var bare *order.BareError
	var bad *Misfit
	return errors.As(err, &bare) || errors.As(err, &bad)
}

// Permuted are nodes in another order.
func Permuted(nodes []order.Node, at []int) []order.Node {
	all := make([]order.Node, len(nodes))
	for k, i := range at {
		all[k] = nodes[i]
	}
	return all
}

// Scattered lists 0 to n−1 in an order whose beginnings are spread over the whole range. The step is about the
// golden section of n, and coprime to n.
func Scattered(n int) []int {
	step := max(int(float64(n)*(math.Sqrt(5)-1)/2), 1)
	for divisor(step, n) != 1 {
		step++
	}
	list := make([]int, n)
	for k := range list {
		list[k] = k * step % n
	}
	return list
}

func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
