package isolate

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/order"
)

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
// without a formula from captured tensors. For a large entry the evidence covers a few tokens: see partOf.
func (i *Isolator) Evidence(ctx context.Context, n order.Node) (*Evidence, error) {
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
