package certify

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// opens reports whether the program of an entry changes if only the nodes that has accepts count as captured.
func (i *Isolator) opens(left []*evidence, has func(e *evidence) func(order.Node) bool) (bool, error) {
	for _, e := range left {
		t, err := i.unread(e.node, has(e))
		if err == nil && len(t.cut.Steps) != len(e.cut.Steps) {
			return true, nil
		} else if err != nil && !lacking(err) {
			return false, err
		}
	}
	return false, nil
}

// opened returns the entries with programs that begin with the nodes that has accepts. It returns nil if the program of no entry changes.
func (i *Isolator) opened(ctx context.Context, left []*evidence, has func(e *evidence) func(order.Node) bool) ([]*evidence, error) {
	all, some := slices.Clone(left), false
	for k, e := range left {
		t, err := i.unread(e.node, has(e))
		if lacking(err) || err == nil && (len(t.cut.Steps) == len(e.cut.Steps) || e.kept != nil && !t.inParts()) {
			continue
		} else if err != nil {
			return nil, err
		}
		if e.kept != nil { // it is some tokens
			t, err = t.of(e.kept)
		} else {
			err = t.readAll()
		}
		if err != nil {
			return nil, err
		}
		t.read = i.orArgument
		if err := t.prepare(ctx); err != nil {
			return nil, err
		} else if t.formula == nil {
			continue
		}
		some, all[k] = true, &evidence{t, e.left}
	}
	if !some {
		return nil, nil
	}
	return all, nil
}

// fromArguments are what was captured without masks and rotary tables, which are computed too.
func (i *Isolator) fromArguments(*evidence) func(order.Node) bool {
	return func(n order.Node) bool { return i.given(n) || i.has(n) && !i.fixed(n.Entry) }
}

// fromTokens are what was captured without the caches of the passes before, which may not be what was kept: a cache is then computed
// from what each pass has put into it.
func (i *Isolator) fromTokens(e *evidence) func(order.Node) bool {
	return func(n order.Node) bool {
		return i.has(n) && (n.Pass == e.node.Pass || e.node.Pass > mostPasses || !i.cached(n.Entry))
	}
}

// mostPasses is the last pass whose cache is computed from what each earlier pass has put into it.
const mostPasses = 16

// fromProducts accepts, in earlier passes, the captured products with matrices and nothing else: a tensor that was made from the products may not be the
// tensor that was kept.
func (i *Isolator) fromProducts(e *evidence) func(order.Node) bool {
	return func(n order.Node) bool {
		if !i.has(n) || n.Pass == e.node.Pass || e.node.Pass > mostPasses || i.given(n) || i.fixed(n.Entry) {
			return i.has(n)
		}
		return slices.ContainsFunc(i.list.Entries[n.Entry].Weights, func(w order.Weight) bool { return len(w.Shape) > 1 })
	}
}

// cached reports whether an entry goes on with itself of the pass before.
func (i *Isolator) cached(entry int) bool {
	e := &i.list.Entries[entry]
	return slices.ContainsFunc(e.Inputs, func(r order.Ref) bool { return r.Prev && r.Name == e.Name })
}

// given reports whether a node is an argument of the model.
func (i *Isolator) given(n order.Node) bool {
	_, given := i.list.At(n).Op.(op.Given)
	return given
}

// fixed reports whether an entry is the same in every model of its settings: it follows from positions, without any weight.
func (i *Isolator) fixed(entry int) bool {
	e := &i.list.Entries[entry]
	if e.Op == nil || len(e.Weights) > 0 || len(e.Inputs) == 0 {
		return false
	}
	return !slices.ContainsFunc(e.Inputs, func(r order.Ref) bool {
		at := i.list.Index(r.Name)
		return r.Prev || !i.given(order.Node{Entry: at}) && !i.fixed(at)
	})
}
