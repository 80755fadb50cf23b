package propose

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// otherWeights lists the entries of the same layer whose operation is the same and whose weights have the same shapes: their weights may stand in place of those of an entry. It lists
// nothing where the entry cannot be computed.
func (p *proposer) otherWeights(r *role) (all []donor, err error) {
	first := r.layers[keysOf(r.layers)[0]]
	x, ok, err := p.computed.of(first)
	if !ok || err != nil || len(first.Weights) == 0 {
		return nil, err
	}
	for i := range p.list.Entries {
		e := &p.list.Entries[i]
		if e == first || e.Layer != first.Layer || e.Op == nil || e.Op.Kind() != first.Op.Kind() || !sameShapes(e.Weights, first.Weights) {
			continue
		}
		all = append(all, donor{text: layered(e), key: e.Name + "\x00" + x.Key, given: p.computed.withWeights(r, e)})
	}
	return all, nil
}

// sameShapes reports whether two operations have as many weights, with the same shapes and other names.
func sameShapes(a, b []order.Weight) bool {
	return slices.EqualFunc(a, b, func(x, y order.Weight) bool { return x.Name != y.Name && slices.Equal(x.Shape, y.Shape) })
}

// withWeights returns c, but an entry has the weights of another entry in all layers.
func (c *computed) withWeights(r *role, other *order.Entry) *computed {
	of := map[string]order.Weight{}
	for layer, e := range r.layers {
		o, ok := c.p.list.Lookup(mapping.InLayer(layered(other), fmt.Sprint(layer)))
		if !ok || !sameShapes(o.Weights, e.Weights) {
			continue
		}
		for i, w := range e.Weights {
			of[w.Name] = o.Weights[i]
		}
	}
	weights := func(w order.Weight) (program.Rows, error) {
		if o, ok := of[w.Name]; ok {
			w = o
		}
		return c.weights(w)
	}
	return &computed{p: c.p, weights: weights, have: maps.Clone(c.have), made: map[string]expected{}}
}
