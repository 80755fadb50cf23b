package certify

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/order"
)

// captured are the entries of a trace that can be computed from others of it, by their forms.
type captured struct {
	once  sync.Once
	names []formKey // of the forms, in the order of the trace
	nodes map[formKey][]order.Node
}

// Entries of a form are looked at until there are maxEntries, or formElements elements of minEntries, spread over the trace:
// what a search costs does not grow with the trace. Before another entry is accused, a second arithmetic is looked for in those that
// were not looked at: see beyondSample.
const (
	maxEntries   = 256
	minEntries   = 4
	formElements = 1 << 20
)

// capturedForms are the captured entries, worked out once.
func (i *Isolator) capturedForms() *captured {
	c := &i.captured
	c.once.Do(func() {
		c.nodes = map[formKey][]order.Node{}
		for _, r := range i.trace.Records() {
			n := order.Node{Entry: i.list.Index(r.Name), Pass: r.Pass}
			if n.Entry < 0 || r.Firing != 0 || n.Pass >= len(i.env.Passes) || !i.has(n) {
				continue
			}
			cut, err := i.list.Cut(i.has, n)
			if err != nil { // what it is made of was not captured
				continue
			}
			name := i.formOf(cut, n)
			if c.nodes[name] == nil {
				c.names = append(c.names, name)
			}
			c.nodes[name] = append(c.nodes[name], n)
		}
	})
	return c
}

// evidence is an entry with what transformers' arithmetic leaves of it; nil for one that no formula gives from what was captured. Of a large entry it is
// a few tokens: see [Isolator.partOf].
func (i *Isolator) evidence(ctx context.Context, n order.Node) (*evidence, error) {
	t, err := i.partOf(ctx, n)
	if t == nil && err == nil {
		t, err = i.trial(n)
	}
	if lacking(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if right, err := t.rightInQueries(ctx); right || err != nil {
		return &evidence{t, nil}, errors.Join(err, t.prepare(ctx))
	}
	_, left, _, err := t.strict(ctx, &arithmetic{})
	if err != nil || t.formula == nil {
		return nil, err
	}
	return &evidence{t, left}, nil
}

// shows reports whether an entry has a finite element, or one that transformers' arithmetic leaves. NaN is NaN in every arithmetic: an entry of NaN would only take
// the place of an entry that shows something, and few entries of a form are looked at.
func (e *evidence) shows() bool {
	return len(e.left) > 0 || slices.ContainsFunc(e.y.Data, func(y float64) bool { return !math.IsNaN(y) && !math.IsInf(y, 0) })
}

// lacking reports whether an error says that an entry cannot be computed from what was captured.
func lacking(err error) bool {
	var bare *order.BareError
	var bad *misfit
	return errors.As(err, &bare) || errors.As(err, &bad)
}

// entriesOf are the captured entries of a form, as many as are looked at, and the nodes that are not.
func (k *forms) entriesOf(ctx context.Context, name formKey) (all []*evidence, others []order.Node, err error) {
	nodes := k.i.capturedForms().nodes[name]
	nodes = permuted(nodes, scattered(len(nodes)))
	elements := 0
	for at, n := range nodes {
		if len(all) >= maxEntries || len(all) >= minEntries && elements >= formElements {
			return all, nodes[at:], nil
		}
		e, err := k.i.evidence(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		if e != nil && e.shows() {
			all = append(all, e)
			elements += len(e.y.Data)
		}
	}
	return all, nil, nil
}

// permuted are nodes in another order.
func permuted(nodes []order.Node, at []int) []order.Node {
	all := make([]order.Node, len(nodes))
	for k, i := range at {
		all[k] = nodes[i]
	}
	return all
}

// beyondSample is what is known of a form with entries beside those that were looked at: of a kernel that some layers have, these
// may have shown nothing. What the form's arithmetics leave of some others has to be given by a second one.
func (k *forms) beyondSample(ctx context.Context, known verdict, name formKey) (verdict, error) {
	f, err := k.alone(ctx, name)
	if err != nil || len(f.others) == 0 || known.own == nil || known.second != nil {
		return known, err
	}
	return k.sampled.Get(ctx, name, func(ctx context.Context) (verdict, error) {
		beyond := known
		suspects, err := k.suspectsBeyond(ctx, known.own, f.others)
		if len(suspects) > 0 && err == nil {
			drawOn(&account{}, suspects)
			beyond.second, err = f.secondOf(ctx, known.own, suspects)
		}
		return beyond, err
	})
}

// suspectsBeyond are a few of the entries that were not looked at, which an arithmetic does not give.
func (k *forms) suspectsBeyond(ctx context.Context, own *arithmetic, others []order.Node) ([]*evidence, error) {
	var suspects []*evidence
	for _, n := range others {
		if len(suspects) == minEntries {
			break
		}
		e, err := k.i.evidence(ctx, n)
		if err != nil {
			return nil, err
		}
		if e == nil || len(e.left) == 0 {
			continue
		}
		if _, rest, _, err := e.strict(ctx, own); err != nil {
			return nil, err
		} else if len(rest) > 0 {
			suspects = append(suspects, e)
		}
	}
	return suspects, nil
}

// scattered lists 0 to n−1 in an order whose beginnings are spread over all: by steps of about the golden section of n that
// have no common divisor with it.
func scattered(n int) []int {
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
