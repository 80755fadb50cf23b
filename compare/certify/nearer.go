package certify

import (
	"context"
	"fmt"

	"github.com/tracediff/tracediff/order"
)

// In 16 bits the bounds of the right operation may hold all that a mistake changes: a window that is one key short moves some elements of the first layer
// by one unit. Where the other entries of the form prove the mistake, two hypotheses are left for such an entry, the mistake and the right operation, and
// the bits of the entry decide between them.

// Nearer counts rows of an entry. Other entries of the form prove a mistake. In With rows the mistake gives more elements to the bit than the right operation
// does, and in Without rows fewer.
type Nearer struct {
	With    int `json:"with"`
	Without int `json:"without"`
}

// withMistake is the certificate of an entry that is right by its bounds, if other entries of its form have a mistake. It is a BUG if the mistake gives
// every element, and surely more of them to the bit. The search for the mistake is not begun here.
func (k *forms) withMistake(ctx context.Context, n order.Node, cut *order.Plan, c *Certificate) (*Certificate, error) {
	if !c.Good() || c.Unequal == 0 {
		return c, nil
	}
	name := k.i.formOf(cut, n)
	if !k.asked(name) {
		return c, nil
	}
	f, err := k.verdictOf(ctx, name)
	if err != nil || f.wrong == nil || !f.definite {
		return c, err
	}
	t, err := k.i.trial(n)
	if err != nil || t.block() > 0 { // so much is not in memory at one time
		return c, err
	}
	with, err := f.wrong.Judge(ctx, t, f.own)
	if with == nil || err != nil {
		return c, err
	}
	without, err := t.in(ctx, evaluated{arithmetic: f.own})
	if err != nil {
		return nil, err
	}
	var rows Nearer
	if rows.With, rows.Without = nearerIn(with, without); !surely(rows.With, rows.Without) {
		return c, nil
	}
	var changed []int
	for at, y := range t.y.Data {
		if y == with.round(with.x.Data[at]) && y != without.round(without.x.Data[at]) {
			changed = append(changed, at)
		}
	}
	bug := *c
	bug.Outcome, bug.Nearer = Bug, &rows
	bug.Set, bug.FirstToken = whereOutside(changed, t.y.Shape, t.entry.Axes), firstToken(changed, t.y.Shape, t.entry)
	f.wrong.Describe(&bug)
	return &bug, t.verify(&bug)
}

// words say why an entry is wrong although no element is outside of its bounds.
func (n Nearer) words() string {
	return fmt.Sprintf("wrong on its own inputs: rounding could explain every element, but the mistake that other entries prove gives more elements to the bit in %d rows, and fewer in %d",
		n.With, n.Without)
}
