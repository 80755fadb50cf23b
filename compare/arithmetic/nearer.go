package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// In 16 bits the bounds of the right operation may hold all that a mistake changes: a window that is one key short moves some elements of the first layer
// by one unit. Where the other entries of the form prove the mistake, two hypotheses are left for such an entry, the mistake and the right operation, and
// the bits of the entry decide between them.

// WithMistake is the certificate of an entry that is right by its bounds, if other entries of its form have a mistake. It is a BUG if the mistake gives
// every element, and surely more of them to the bit. The search for the mistake is not begun here.
func (k *Forms) WithMistake(ctx context.Context, n order.Node, cut *order.Plan, c *isolate.Certificate) (*isolate.Certificate, error) {
	if !c.Good() || c.Unequal == 0 {
		return c, nil
	}
	name := k.I.FormOf(cut, n)
	if !k.Asked(name) {
		return c, nil
	}
	f, err := k.Verdict(ctx, name)
	if err != nil || f.Wrong == nil || !f.Definite {
		return c, err
	}
	t, err := k.I.Trial(n)
	if err != nil || t.Block() > 0 { // so much is not in memory at one time
		return c, err
	}
	with, err := f.Wrong.Judge(ctx, t, f.Own)
	if with == nil || err != nil {
		return c, err
	}
	without, err := t.Evaluate(ctx, isolate.Evaluation{Arithmetic: f.Own})
	if err != nil {
		return nil, err
	}
	var rows isolate.Nearer
	if rows.With, rows.Without = nearerIn(with, without); !surely(rows.With, rows.Without) {
		return c, nil
	}
	var changed []int
	for at, y := range t.Y.Data {
		if y == with.Round(with.X.Data[at]) && y != without.Round(without.X.Data[at]) {
			changed = append(changed, at)
		}
	}
	bug := *c
	bug.Outcome, bug.Nearer = isolate.Bug, &rows
	bug.Set, bug.FirstToken = isolate.WhereOutside(changed, t.Y.Shape, t.Entry.Axes), isolate.FirstToken(changed, t.Y.Shape, t.Entry)
	bug.Describe(f.Wrong)
	return &bug, isolate.Verify(ctx, t, &bug)
}
