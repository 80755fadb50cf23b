package naming

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// opensProgram reports whether the program of an entry changes if only the nodes that has accepts count as captured.
func opensProgram(i *isolate.Isolator, left []*isolate.Evidence, has func(e *isolate.Evidence) func(order.Node) bool) (bool, error) {
	for _, e := range left {
		t, err := i.Unread(e.Node, has(e))
		if err == nil && len(t.Cut.Steps) != len(e.Cut.Steps) {
			return true, nil
		} else if err != nil && !isolate.Lacking(err) {
			return false, err
		}
	}
	return false, nil
}

// openedEntries returns the entries with programs that begin with the nodes that has accepts. It returns nil if the program of no entry changes.
func openedEntries(ctx context.Context, i *isolate.Isolator, left []*isolate.Evidence, has func(e *isolate.Evidence) func(order.Node) bool) ([]*isolate.Evidence, error) {
	all, some := slices.Clone(left), false
	for k, e := range left {
		t, err := i.Unread(e.Node, has(e))
		if isolate.Lacking(err) || err == nil && (len(t.Cut.Steps) == len(e.Cut.Steps) || e.Rows() != nil && !isolate.InParts(t)) {
			continue
		} else if err != nil {
			return nil, err
		}
		if e.Rows() != nil { // it is some tokens
			t, err = t.Of(e.Rows())
		} else {
			err = t.ReadAll()
		}
		if err != nil {
			return nil, err
		}
		t.Read = i.OrArgument
		if err := t.Prepare(ctx); err != nil {
			return nil, err
		} else if t.Formula == nil {
			continue
		}
		some, all[k] = true, &isolate.Evidence{Trial: t, Left: e.Left}
	}
	if !some {
		return nil, nil
	}
	return all, nil
}

// fromArguments accepts the captured tensors except masks and rotary tables, which are computed too.
func fromArguments(i *isolate.Isolator, _ *isolate.Evidence) func(order.Node) bool {
	return func(n order.Node) bool { return i.Given(n) || i.Has(n) && !i.Fixed(n.Entry) }
}

// fromTokens accepts the captured tensors except the caches of earlier passes, which may differ from the cache in
// use: a cache is then computed from the values added by each pass.
func fromTokens(i *isolate.Isolator, e *isolate.Evidence) func(order.Node) bool {
	return func(n order.Node) bool {
		return i.Has(n) && (n.Pass == e.Node.Pass || e.Node.Pass > mostPasses || !isCache(i, n.Entry))
	}
}

// mostPasses is the last pass with a cache computed from the values added by each earlier pass.
const mostPasses = 16

// fromProducts accepts, in earlier passes, the captured products with matrices and nothing else: a tensor that was made from the products may not be the
// tensor that was kept.
func fromProducts(i *isolate.Isolator, e *isolate.Evidence) func(order.Node) bool {
	return func(n order.Node) bool {
		if !i.Has(n) || n.Pass == e.Node.Pass || e.Node.Pass > mostPasses || i.Given(n) || i.Fixed(n.Entry) {
			return i.Has(n)
		}
		return slices.ContainsFunc(i.List().Entries[n.Entry].Weights, func(w order.Weight) bool { return len(w.Shape) > 1 })
	}
}

// isCache reports whether an entry goes on with itself of the pass before.
func isCache(i *isolate.Isolator, entry int) bool {
	e := &i.List().Entries[entry]
	return slices.ContainsFunc(e.Inputs, func(r order.Ref) bool { return r.Prev && r.Name == e.Name })
}
