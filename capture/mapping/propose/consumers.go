package propose

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
)

// byConsumers moves a tensor from an entry to the next one if more tensors are recomputed then, and the name fits as well. A port that forgets to scale its embeddings
// dumps the values of the lookup, and computes layer 0 from them.
func (p consumers) byConsumers(ctx context.Context) error {
	if p.computed == nil {
		return nil
	}
	for _, pair := range slices.Clone(p.pairs) {
		for _, next := range p.free {
			if err := ctx.Err(); err != nil {
				return err
			}
			if next.taken || len(pair.lines) != 1 || len(pair.lines[0].To) != 1 || !p.follows(next, pair.r) || names.Alikeness(pair.t.Text, next.text) < names.Alikeness(pair.t.Text, pair.r.text) {
				continue
			}
			line := pair.lines[0]
			line.To = []string{next.text}
			now, err := p.rightBehind(next, p.computed)
			if err != nil {
				return err
			}
			given, err := p.computed.supposing(pair.t, []Line{line})
			if err != nil {
				return err
			}
			for _, e := range pair.r.layers {
				delete(given.have, e.Name)
			}
			then, err := p.rightBehind(next, given)
			if err != nil {
				return err
			}
			if then <= now {
				continue
			}
			line.Why = fmt.Sprintf("the tensors computed from it confirm it (%d of them)", then)
			if line.By == "" {
				line.Why += "; it has the values of " + pair.r.text
			}
			line.at = next.at
			i := slices.IndexFunc(p.out.Lines, func(l Line) bool { return l.From == line.From && slices.Equal(l.To, pair.lines[0].To) })
			p.out.Lines[i] = line
			pair.r.taken, next.taken, p.computed = false, true, given
			break
		}
	}
	return nil
}

// rightBehind counts the tensors whose cut has an entry, as a leaf or a step, and that are recomputed right.
func (p *recomputing) rightBehind(r *role, c *computed) (right int, err error) {
	of := map[string]bool{}
	for _, e := range r.layers {
		of[e.Name] = true
	}
	reads := func(n order.Node) bool { return of[p.list.At(n).Name] }
	for name, x := range c.have {
		e, ok := p.list.Lookup(name)
		if !ok || of[name] || !x.DType.Float() {
			continue
		}
		cut := c.cut(e)
		if cut == nil || !slices.ContainsFunc(cut.Leaves, reads) && !slices.ContainsFunc(cut.Steps, reads) {
			continue
		}
		want, ok, err := c.of(e)
		if !ok || err != nil {
			if err != nil {
				return 0, err
			}
			continue
		}
		d, err := p.values.Distance(x, want, "")
		if err != nil {
			return 0, err
		}
		right += btoi(d < tensors.Near)
	}
	return right, nil
}
