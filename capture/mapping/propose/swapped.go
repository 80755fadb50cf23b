package propose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
)

// misnamed is a tensor that has the name of an entry and not its values.
type misnamed struct {
	name string // in the dump, as a pattern
	of   *order.Entry
	x    tensors.Tensor
	has  *order.Entry // whose values it has
}

// swapped finds cycles of tensors with each other's names: each has the values of another entry of the cycle. Either the names or the
// values are wrong. No number tells which, so the lines are a person's choice.
func (p swaps) swapped(ctx context.Context, fitted *capture.Trace) error {
	if p.ref == nil {
		return nil
	}
	all, err := p.misnamed(fitted)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		var best *order.Entry
		for _, o := range all {
			if o == m || best != nil && m.nearness(o.of) >= m.nearness(best) {
				continue
			}
			d, ok, err := p.equal(m.x, o.of.Name)
			if err != nil {
				return err
			}
			if ok && d < tensors.Near {
				best = o.of
			}
		}
		m.has = best
	}
	for n := -1; n != len(all); { // of a chain that closes, each is in another's place
		n = len(all)
		all = slices.DeleteFunc(all, func(m *misnamed) bool {
			return m.has == nil || !slices.ContainsFunc(all, func(o *misnamed) bool { return o != m && o != nil && o.has == m.of }) ||
				!slices.ContainsFunc(all, func(o *misnamed) bool { return o != nil && o.of == m.has })
		})
	}
	p.out.Swapped = linesOfSwapped(all)
	for _, m := range all {
		for _, t := range p.open {
			if slices.ContainsFunc(t.Sources, func(s capture.Source) bool { return s.Key == m.x.Key }) {
				t.settled = true
			}
		}
	}
	return nil
}

// nearness ranks an entry by the likelihood of a mix-up with m.of, the likeliest first: 0 for m.of in any layer, 1 for an entry in the
// layer of m.of, 2 for the rest.
func (m *misnamed) nearness(e *order.Entry) int {
	switch {
	case layered(e) == layered(m.of):
		return 0
	case e.Layer == m.of.Layer:
		return 1
	}
	return 2
}

// layered is the name of an entry in all layers.
func layered(e *order.Entry) string {
	return inLayers(e.Name, e.Layer)
}

// inLayers replaces the number of the layer in a name by {L}: the first part between dots with this number. Recorded programs have layers
// under any path, such as h.3 or encoder.blocks.3.
func inLayers(name string, layer int) string {
	parts := strings.Split(name, ".")
	if i := slices.Index(parts, strconv.Itoa(layer)); layer >= 0 && i >= 0 {
		parts[i] = "{L}"
	}
	return strings.Join(parts, ".")
}

// misnamed are the tensors of the first pass that are called like an entry and have other values, or another shape.
func (p swaps) misnamed(fitted *capture.Trace) ([]*misnamed, error) {
	var all []*misnamed
	sources := fitted.Sources()
	for i, r := range fitted.Records() {
		e, ok := p.list.Lookup(r.Name)
		if !ok || r.Pass > 0 || r.Firing > 0 || r.LastRow || !r.DType.Float() || e.Op == nil || e.Compare == order.Pattern {
			continue
		}
		was := p.trace.Records()[i]
		m := &misnamed{name: names.Escape(was.Name), of: e, x: tensors.New(was.Key, r.Shape, r.DType, sources[i].Data)}
		d, known, err := p.equal(m.x, e.Name)
		if err != nil {
			return nil, err
		}
		if known && d >= tensors.Near {
			all = append(all, m)
		}
	}
	return all, nil
}

// linesOfSwapped are the lines for exchanged tensors, one for all layers with the same exchange.
func linesOfSwapped(all []*misnamed) []Line {
	same := map[[2]string]int{}
	for _, m := range all {
		if m.of.Layer >= 0 && m.of.Layer == m.has.Layer {
			same[[2]string{layered(m.of), layered(m.has)}]++
		}
	}
	var list []Line
	done := map[[2]string]bool{}
	for _, m := range all {
		l := Line{From: m.name, To: []string{m.has.Name}, Why: "the values of " + m.has.Name + ", and not its own"}
		pair := [2]string{layered(m.of), layered(m.has)}
		if pattern := inLayers(m.name, m.of.Layer); same[pair] > 1 && pattern != m.name {
			if done[pair] {
				continue
			}
			done[pair] = true
			l.From, l.To = pattern, []string{pair[1]}
			l.Why = fmt.Sprintf("the values of %s in %d layers, and not its own", pair[1], same[pair])
		}
		list = append(list, l)
	}
	slices.SortStableFunc(list, func(a, b Line) int { return cmp.Compare(a.From, b.From) })
	return list
}
