package arithmetic

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// A port with quantised weights differs from the original in every product, without a mistake in any product. This
// is reported once, if most products of the trace look like it: nearly every element is off, in all directions, by
// the error of codes of 8 to 2 bits. The evidence is the common look of the products. It is neither a proof nor the
// name of a bug: the entries stay wrong.

// mostLooked is the number of products examined, spread over the model.
const mostLooked = 16

// Quantised is what the products of a trace look like.
type Quantised struct {
	Products []order.Node
	Text     string             // empty: not like those of quantised weights
	levels   map[string]float64 // by role: the largest error of those that are like them
}

// Above reports whether the products of a role have a much larger error than the products of every other role.
func (q *Quantised) Above(role string, error float64) bool {
	most := 0.0
	for other, level := range q.levels {
		if other != role {
			most = max(most, level)
		}
	}
	return most > 0 && error > thresholds.Codes.Trace.Above*most
}

// ProductsOf returns the captured entries with exactly one matrix of weights between the entry and its captured
// inputs, in one pass of each kind.
func ProductsOf(i *isolate.Isolator) []order.Node {
	var all []order.Node
	for pass := range min(len(i.Env().Passes), 2) {
		for at := range i.List().Entries {
			n := order.Node{Entry: at, Pass: pass}
			if !i.Has(n) || i.Recomputed(i.List().Entries[at].Name) {
				continue
			}
			cut, err := i.List().Cut(i.Has, n)
			if err != nil {
				continue
			}
			matrices := 0
			for _, step := range cut.Steps {
				for _, w := range i.List().At(step).Weights {
					if len(w.Shape) == 2 {
						matrices++
					}
				}
			}
			if matrices == 1 {
				all = append(all, n)
			}
		}
	}
	return all
}

// Spread returns most of the nodes (at least two), evenly spaced from the first to the last, or all nodes if there
// are fewer.
func Spread(nodes []order.Node, most int) []order.Node {
	n := len(nodes)
	if n <= most {
		return nodes
	}
	var some []order.Node
	for k := range most {
		some = append(some, nodes[k*(n-1)/(most-1)])
	}
	return some
}

// LooksQuantised says what the products of the trace look like.
func LooksQuantised(ctx context.Context, i *isolate.Isolator, products []order.Node) (*Quantised, error) {
	type off struct {
		role  string
		error float64
	}
	var like []off
	names, looked := map[string]bool{}, 0
	q := &Quantised{Products: products, levels: map[string]float64{}}
	some := Spread(products, mostLooked)
	for k, n := range some {
		if left := len(some) - k; float64(len(like)+left) < thresholds.Codes.Trace.Share*float64(looked+left) { // though all that are left were
			return q, nil
		}
		error, err := Coded(ctx, i, n)
		switch {
		case err != nil:
			return nil, err
		case error < 0: // it cannot be computed
			continue
		}
		if looked++; error > 0 {
			name := i.List().At(n).Name
			role := order.NameOf(name).Role()
			like, names[name] = append(like, off{role, error}), true
			q.levels[role] = max(q.levels[role], error)
		}
	}
	if len(names) < thresholds.Codes.Trace.Weights || float64(len(like)) < thresholds.Codes.Trace.Share*float64(looked) {
		return q, nil
	}
	like = slices.DeleteFunc(like, func(o off) bool { return q.Above(o.role, q.levels[o.role]) })
	by := func(a, b off) int { return cmp.Compare(a.error, b.error) }
	q.Text = fmt.Sprintf("quantised weights: nearly every product with a weight is off, by %.2g%% to %.2g%%, as if the weights were quantised",
		100*slices.MinFunc(like, by).error, 100*slices.MaxFunc(like, by).error)
	return q, nil
}

// Coded returns the relative L2 error of an entry whose difference from the product with the original's weights
// looks like quantisation. It returns 0 for any other difference, and −1 for an entry that cannot be computed.
func Coded(ctx context.Context, i *isolate.Isolator, n order.Node) (float64, error) {
	whole, err := i.Unread(n, i.Has)
	if isolate.Lacking(err) {
		return -1, nil
	} else if err != nil {
		return 0, err
	}
	least := thresholds.Codes.Product.Elements
	if i.Env().DType == hooks.BF16 {
		least = thresholds.Codes.Product.Coarse
	}
	var j *isolate.Judgement
	for _, most := range []int{isolate.FocusTokens, whole.Block()} { // a few tokens show what is not quantised
		t, err := isolate.Beginning(whole, most)
		if err != nil {
			return 0, err
		}
		if j, err = t.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{}}); err != nil || float64(len(j.Outside())) < least*float64(len(j.Y.Data)) {
			return 0, err
		}
	}
	c := newCoding(i.List().At(n), j.X, j.Y)
	if !c.plausible() {
		return 0, nil
	}
	if same, err := asInputs(i, n, c); !same || err != nil {
		return 0, err
	}
	return c.error, nil
}
