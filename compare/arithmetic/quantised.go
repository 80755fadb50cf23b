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

// A port whose weights are quantised differs from the original in every product, by no mistake that a product has. That is one thing, and it
// is said once, where most products of the trace show it: nearly every element is off, in all directions, by as much as codes of 8 to 2
// bits are. It is what the products look like together. It is no proof, and no name: the entries stay wrong.

// mostLooked is how many products of a trace are looked at, spread over the model.
const mostLooked = 16

// Quantised is what the products of a trace look like.
type Quantised struct {
	Products []order.Node
	Text     string             // empty: not like those of quantised weights
	levels   map[string]float64 // by role: the largest error of those that are like them
}

// Above reports whether the products of a role are much further off than those of every other role.
func (q *Quantised) Above(role string, error float64) bool {
	most := 0.0
	for other, level := range q.levels {
		if other != role {
			most = max(most, level)
		}
	}
	return most > 0 && error > thresholds.Codes.Above*most
}

// ProductsOf are the captured entries that are made with a matrix of weights, and nothing else before them that is. Of passes of one kind one is
// enough.
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

// Spread are so many of some nodes, at least two, from the first to the last: from all over the model and the run. They are all where there are no
// more.
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
		if left := len(some) - k; float64(len(like)+left) < thresholds.Codes.Share*float64(looked+left) { // though all that are left were
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
			role := roleInLayers(name)
			like, names[name] = append(like, off{role, error}), true
			q.levels[role] = max(q.levels[role], error)
		}
	}
	if len(names) < thresholds.Codes.Weights || float64(len(like)) < thresholds.Codes.Share*float64(looked) {
		return q, nil
	}
	like = slices.DeleteFunc(like, func(o off) bool { return q.Above(o.role, q.levels[o.role]) })
	by := func(a, b off) int { return cmp.Compare(a.error, b.error) }
	q.Text = fmt.Sprintf("quantised weights: nearly every product with a weight is off, by %.2g%% to %.2g%%, as if the weights were quantised",
		100*slices.MinFunc(like, by).error, 100*slices.MaxFunc(like, by).error)
	return q, nil
}

// Coded is the relative L2 error of an entry that differs from the product with the original's weights as one with codes does; 0 where it
// differs otherwise or not at all, −1 where it cannot be computed.
func Coded(ctx context.Context, i *isolate.Isolator, n order.Node) (float64, error) {
	whole, err := i.Unread(n, i.Has)
	if isolate.Lacking(err) {
		return -1, nil
	} else if err != nil {
		return 0, err
	}
	least := thresholds.Codes.Elements
	if i.Env().DType == hooks.BF16 {
		least = thresholds.Codes.Coarse
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
