package naming

import (
	"context"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// Edit is what gives an entry that is wrong by itself.
type Edit struct {
	*diagnose.Finding
	Made  *diagnose.Mistake
	A     *isolate.Arithmetic
	Left  []int
	Turns bool // it turns the pairs of rotary tables: positions are others
}

// EditOf is the edit that gives an entry that is a BUG, in the arithmetic of its form; nil where none is known.
func (k *Names) EditOf(ctx context.Context, n order.Node) (*Edit, error) {
	name := k.i.List().Entries[n.Entry].Name
	named, err := k.nameOf(ctx, diagnose.Role(name))
	found, made := named.finding, named.edit
	if err != nil || !found.Named() {
		return nil, err
	}
	e, err := k.i.Evidence(ctx, n)
	if err != nil || e == nil || made == nil {
		return nil, err
	}
	tries, err := k.Forms.Tries(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, a := range tries {
		if a == nil {
			continue
		}
		if j, err := givenWith(ctx, e.Trial, a, made); err != nil {
			return nil, err
		} else if j != nil {
			return &Edit{found, made, a, e.Left, found.Positions()}, nil
		}
	}
	return nil, nil
}
