package certify

import (
	"context"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
)

// edit is what gives an entry that is wrong by itself.
type edit struct {
	*diagnose.Finding
	made  *diagnose.Mistake
	a     *arithmetic
	left  []int
	turns bool // it turns the pairs of rotary tables: positions are others
}

// editOf is the edit that gives an entry that is a BUG, in the arithmetic of its form; nil where none is known.
func (k *names) editOf(ctx context.Context, n order.Node) (*edit, error) {
	name := k.i.list.Entries[n.Entry].Name
	named, err := k.nameOf(ctx, diagnose.Role(name))
	found, made := named.finding, named.edit
	if err != nil || !found.Named() {
		return nil, err
	}
	e, err := k.i.evidence(ctx, n)
	if err != nil || e == nil || made == nil {
		return nil, err
	}
	tries, err := k.forms.tries(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, a := range tries {
		if a == nil {
			continue
		}
		if j, err := givenWith(ctx, e.trial, a, made); err != nil {
			return nil, err
		} else if j != nil {
			return &edit{found, made, a, e.left, found.Positions()}, nil
		}
	}
	return nil, nil
}
