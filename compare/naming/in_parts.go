package naming

import (
	"context"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// inAllParts reports whether the edit of a name gives every element of the large entries of a role: the search has looked at a few tokens only.
func (k *Names) inAllParts(ctx context.Context, f *named) (bool, error) {
	var nodes []order.Node
	for _, form := range k.i.CapturedForms().Names {
		nodes = append(nodes, k.i.CapturedForms().Nodes[form]...)
	}
	for _, n := range nodes {
		if order.NameOf(k.i.List().At(n).Name).Role() != f.role {
			continue
		}
		k.mu.Lock()
		given := k.Parts[n]
		k.mu.Unlock()
		if given {
			continue
		}
		t, err := k.i.Unread(n, k.i.Has)
		if err != nil || t.Block() == 0 {
			continue
		}
		e, err := k.i.Evidence(ctx, n)
		if err != nil {
			return false, err
		}
		if e == nil || len(e.Left) == 0 {
			continue
		}
		if given, err := k.givenInParts(ctx, t, e, f.edit); !given || err != nil {
			return false, err
		}
	}
	return true, nil
}

// givenInParts reports whether an edit gives every part of a large entry, in one of the arithmetics of the form.
func (k *Names) givenInParts(ctx context.Context, t *isolate.Trial, e *isolate.Evidence, made *diagnose.Mistake) (bool, error) {
	tries, err := k.Forms.Tries(ctx, e)
	if err != nil {
		return false, err
	}
	tokens, n := k.i.Env().Passes[t.Node.Pass].Tokens, t.Block()
	for _, a := range tries {
		given := a != nil
		for from := 0; given && from < tokens; from += n {
			k.i.Says(t.Node, ", token %d of %d, with the mistake", from, tokens)
			part, err := t.Of(isolate.UpTo(from, min(from+n, tokens)))
			if err != nil {
				return false, err
			}
			j, err := givenWith(ctx, part, a, made)
			if err != nil {
				return false, err
			}
			given = j != nil
		}
		if given {
			return true, nil
		}
	}
	return false, nil
}

// givenWith judges an entry with an edit in an arithmetic. The entry is computed once, with the edit. The judgement is nil if the edit leaves an element.
func givenWith(ctx context.Context, t *isolate.Trial, a *isolate.Arithmetic, made *diagnose.Mistake) (*isolate.Judgement, error) {
	s, d, err := withEdit(ctx, t, a, made)
	if d == nil || err != nil {
		return nil, err
	}
	p, call := d.Whole(s.entry.Call)
	return s.given(ctx, p, call)
}

// withEdit is an entry in an arithmetic, and the edit of a mistake in its program: nil if the mistake does not fit the program.
func withEdit(ctx context.Context, t *isolate.Trial, a *isolate.Arithmetic, made *diagnose.Mistake) (*suspect, *program.Edited, error) {
	if err := t.Prepare(ctx); err != nil {
		return nil, nil, err
	}
	s, err := suspectIn(ctx, &isolate.Evidence{Trial: t, Left: nil}, a)
	if err != nil {
		return nil, nil, err
	}
	d, err := ModelOf(t.Isolator).Apply(*made, s.entry)
	return s, d, err
}
