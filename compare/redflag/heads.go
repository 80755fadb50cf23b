package redflag

import (
	"context"
	"math"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
)

// headed collects the behaviour of attention heads and rows in one layer, over all passes.
type headed struct {
	first *subject
	layer int // −1 if the name has none
	heads []headOf
	reach int            // the largest distance from a token to the first key that its row sees
	rows  map[token]bool // by row that sees enough keys: whether the weights are equal in every head
}

// token is a row of a pass.
type token struct{ pass, row int }

// headOf is one head.
type headOf struct {
	even  // spread is the largest of the uniform rows
	stuck onOne
}

// newHeaded is the empty record of a layer, for the layer's first tensor of probabilities.
func newHeaded(s *subject) *headed {
	layer, _, _ := spelling.Layer(s.name)
	return &headed{first: s, layer: layer, heads: make([]headOf, min(s.dim(3), maxHeads)), rows: map[token]bool{}}
}

// add takes in the probabilities of one pass. A layer is not judged by head if a tensor has several sequences or another number of heads.
func (h *headed) add(s *subject, p *probabilities) {
	if len(p.heads) != len(h.heads) || len(h.heads) < 2 || s.dim(3) > maxHeads || s.elements() != int64(s.dim(3))*int64(s.dim(2))*int64(s.dim(1)) {
		h.heads = nil
		return
	}
	h.reach = max(h.reach, p.reach)
	for i := range p.heads {
		one, from := &h.heads[i], &p.heads[i]
		one.wide += from.wide
		one.uniform += from.uniform
		one.spread = max(one.spread, from.spread)
		one.stuck.add(s, from.onKey, p.queries, p.keys)
	}
	for row, uniform := range p.uniformRows {
		h.rows[token{s.pass, row}] = uniform == len(h.heads)
	}
}

// byHead looks for one head with the same mistake in every layer of a stack. In a single layer, a trained head without a mistake may look
// nearly the same.
func byHead(v *view, f *found, layers []*headed) {
	stacks := map[string][]*headed{} // by the name without the layer's number
	var order []string
	for _, h := range layers {
		if stack := layerless(h.first.name); h.heads != nil && h.layer >= 0 {
			if stacks[stack] == nil {
				order = append(order, stack)
			}
			stacks[stack] = append(stacks[stack], h)
		}
	}
	for _, name := range order {
		if len(stacks[name]) >= headLayers {
			stack(v, f, stacks[name])
		}
	}
}

// stack looks at the layers of one stack.
func stack(v *view, f *found, layers []*headed) {
	count, fromFirst := math.MaxInt, false
	for _, h := range layers {
		count = min(count, len(h.heads))
		fromFirst = fromFirst || h.layer == 0
	}
	for i := range count {
		uniformHead(v, f, layers, i)
		if (len(layers) >= stuckLater || fromFirst && len(layers) >= stuckLayers) && stuckHead(v, f, kindOf{"layers", layers}, i, 0) {
			continue
		}
		for _, kind := range byReach(v, layers) {
			if len(kind.layers) >= stuckLayers {
				stuckHead(v, f, kind, i, v.limits.attention.fully)
			}
		}
	}
	uniformRow(v, f, layers)
}

// uniformHead looks at one head for rows that weigh all keys the same.
func uniformHead(v *view, f *found, layers []*headed, i int) {
	rows, spread, all := int64(0), 0., true
	for _, h := range layers {
		one := &h.heads[i]
		if one.wide == 0 || one.uniform < one.wide {
			return
		}
		rows += one.wide
		spread = max(spread, one.spread)
		for j := range h.heads {
			all = all && h.heads[j].uniform == h.heads[j].wide
		}
	}
	if all { // every head is uniform: the layers have flags already
		return
	}
	f.raiseIn(AttentionUniform, layers, []Number{number("head", float64(i)), number("layers", float64(len(layers))), number("rows", float64(rows)), number("spread", spread), number("limit", v.limits.attention.uniform)},
		"head %d of each of %d layers: all %d rows of %d keys or more have equal weights, within %.2g of the mean", i, len(layers), rows, uniformKeys, v.limits.attention.uniform)
}

// byReach divides layers into layers with a window and layers without a window; nil if all layers are of one kind. The kind is read from the
// configuration, or else from how far the layer sees.
func byReach(v *view, layers []*headed) (kinds []kindOf) {
	farthest := 0
	for _, h := range layers {
		farthest = max(farthest, h.reach)
	}
	with, without := kindOf{name: "layers with a window"}, kindOf{name: "layers without a window"}
	for _, h := range layers {
		slides := h.reach < farthest
		if v.list != nil && h.layer < len(v.list.Config.LayerTypes) {
			slides = v.list.Config.LayerTypes[h.layer] == order.Sliding
		}
		if slides {
			with.layers = append(with.layers, h)
		} else {
			without.layers = append(without.layers, h)
		}
	}
	if with.layers == nil || without.layers == nil {
		return nil
	}
	return []kindOf{with, without}
}

// kindOf are the layers of one kind.
type kindOf struct {
	name   string
	layers []*headed
}

// stuckHead reports whether head i puts nearly all its weight, least or more, on one key in every row of every layer, and flags the head. If every
// head does so, the layers have flags already.
func stuckHead(v *view, f *found, of kindOf, i int, least float64) bool {
	layers := of.layers
	rows, weight, all := int64(0), 1., true
	for _, h := range layers {
		one := &h.heads[i].stuck
		if !one.holds() || one.weight < least {
			return false
		}
		rows += one.rows
		weight = min(weight, one.weight)
		for j := range h.heads {
			all = all && h.heads[j].stuck.holds()
		}
	}
	if all {
		return true
	}
	first := &layers[0].heads[i].stuck
	f.raiseIn(AttentionStuck, layers, []Number{number("head", float64(i)), number("layers", float64(len(layers))), number("rows", float64(rows)), number("key", float64(first.slot)), number("weight", weight), number("limit", v.limits.attention.stuck)},
		"head %d of each of %d %s: all %d rows put a weight of at least %.4g on one key, in the first of these layers on %s", i, len(layers), of.name, rows, weight, first.where())
	return true
}

// uniformRow looks for a token whose row has equal weights in every head of every layer.
func uniformRow(v *view, f *found, layers []*headed) {
	judged, found := 0, []token{}
	for at := range layers[0].rows {
		judged++
		same := true
		for _, h := range layers {
			same = same && h.rows[at]
		}
		if same {
			found = append(found, at)
		}
	}
	if len(found) == 0 || len(found) == judged {
		return
	}
	first := found[0]
	for _, at := range found[1:] {
		if at.pass < first.pass || at.pass == first.pass && at.row < first.row {
			first = at
		}
	}
	f.raiseIn(AttentionUniform, layers, []Number{number("layers", float64(len(layers))), number("rows", float64(judged)), number("rows_wrong", float64(len(found))), number("limit", v.limits.attention.uniform)},
		"in every head of each of %d layers, %d of %d tokens have equal weights on all keys, within %.2g of the mean, the first at row %d of pass %d", len(layers), len(found), judged, v.limits.attention.uniform, first.row, first.pass)
}

// scores looks for a head whose scores were not written: every score is 0 or masked.
func scores(ctx context.Context, v *view, f *found) error {
	for i := range v.subjects {
		s := &v.subjects[i]
		if !s.is(roleScores) || !s.DType.Float() || s.seen.bad() || s.dim(3) < 2 || s.dim(1) > maxRow || int64(s.dim(2))*int64(s.dim(1)) < uniformKeys ||
			s.elements() != int64(s.dim(3))*int64(s.dim(2))*int64(s.dim(1)) || s.dim(3) > maxHeads || s.seen.largest == 0 {
			continue
		}
		written := make([]bool, s.dim(3))
		err := v.rows(ctx, s, func(at int64, x []float64) (bool, error) {
			for _, y := range x {
				if y != 0 && y > -floats.Largest(s.DType)/2 {
					written[at/int64(s.dim(2))] = true
					break
				}
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		for head, yes := range written {
			if !yes {
				f.raise(Zero, s, []Number{number("head", float64(head)), number("elements", float64(s.dim(2)*s.dim(1)))}, "all %d elements of head %d of %d are 0", s.dim(2)*s.dim(1), head, s.dim(3))
			}
		}
	}
	return nil
}
