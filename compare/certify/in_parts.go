package certify

import (
	"context"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
)

// inAllParts reports whether the edit of a name gives every element of the large entries of a role: the search has looked at a few tokens only.
func (k *names) inAllParts(ctx context.Context, f *named) (bool, error) {
	var nodes []order.Node
	for _, form := range k.i.capturedForms().names {
		nodes = append(nodes, k.i.capturedForms().nodes[form]...)
	}
	for _, n := range nodes {
		if diagnose.Role(k.i.list.At(n).Name) != f.role {
			continue
		}
		k.mu.Lock()
		given := k.parts[n]
		k.mu.Unlock()
		if given {
			continue
		}
		t, err := k.i.unread(n, k.i.has)
		if err != nil || t.block() == 0 {
			continue
		}
		e, err := k.i.evidence(ctx, n)
		if err != nil {
			return false, err
		}
		if e == nil || len(e.left) == 0 {
			continue
		}
		if given, err := k.givenInParts(ctx, t, e, f.edit); !given || err != nil {
			return false, err
		}
	}
	return true, nil
}

// givenInParts reports whether an edit gives every part of a large entry, in one of the arithmetics of the form.
func (k *names) givenInParts(ctx context.Context, t *trial, e *evidence, made *diagnose.Mistake) (bool, error) {
	tries, err := k.forms.tries(ctx, e)
	if err != nil {
		return false, err
	}
	tokens, n := k.i.env.Passes[t.node.Pass].Tokens, t.block()
	for _, a := range tries {
		given := a != nil
		for from := 0; given && from < tokens; from += n {
			k.i.tell(t.node, ", token %d of %d, with the mistake", from, tokens)
			part, err := t.of(upTo(from, min(from+n, tokens)))
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
func givenWith(ctx context.Context, t *trial, a *arithmetic, made *diagnose.Mistake) (*judged, error) {
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	s, err := suspectIn(ctx, &evidence{t, nil}, a)
	if err != nil {
		return nil, err
	}
	d, err := t.i.model().Apply(*made, s.entry)
	if d == nil || err != nil {
		return nil, err
	}
	p, call := d.Whole(s.entry.Call)
	return s.given(ctx, p, call)
}
