package naming

import (
	"context"

	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// edit is a change that explains an entry with a BUG.
type edit struct {
	finding *diagnose.Finding
	mistake *diagnose.Mistake
	a       *isolate.Arithmetic
	left    []int // what transformers' arithmetic leaves of the entry
}

// Text is the name of what is wrong.
func (e *edit) Text() string { return e.finding.Name.Text() }

// Turns reports whether the edit rotates the pairs of rotary tables, as other positions do.
func (e *edit) Turns() bool { return e.finding.Positions() }

// Program returns the entry's program with the edit; ok is false if the edit does not apply to the program.
func (e *edit) Program(ctx context.Context, t *isolate.Trial) (p *program.Program, c program.Call, ok bool, err error) {
	s, err := suspectOf(ctx, &isolate.Evidence{Trial: t, Left: e.left}, e.a)
	if err != nil {
		return nil, c, false, err
	}
	d, err := ModelOf(t.Isolator).Apply(*e.mistake, s)
	if d == nil || err != nil {
		return nil, c, false, err
	}
	p, c = d.Whole(s.Call)
	return p, c, true, nil
}

// EditOf returns the edit that explains an entry with a BUG, in the arithmetic of its form; nil if unknown.
func (k *Names) EditOf(ctx context.Context, n order.Node) (chain.Edit, error) {
	name := k.i.List().Entries[n.Entry].Name
	named, err := k.nameOf(ctx, order.NameOf(name).Role())
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
			return &edit{found, made, a, e.Left}, nil
		}
	}
	return nil, nil
}
