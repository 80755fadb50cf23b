package naming

import (
	"context"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// A product with a large vocabulary takes longer than a search. If the first tokens of an entry are wrong, the search for the mistake begins at once. Each later
// part then multiplies once: the right program and the program with the mistake share the product.

// inEachPart follows a mistake through the parts of an entry.
type inEachPart struct {
	names   *Names
	edit    *diagnose.Mistake
	a       *isolate.Arithmetic
	columns int  // the columns of parts with sampled bounds; 0 for complete bounds, see [program.Value.Columns]
	given   bool // every part so far
}

// Follow follows the mistake of an entry whose first part is a BUG with a certificate.
func (k *Names) Follow(ctx context.Context, first *isolate.Trial, c *isolate.Certificate) (isolate.Follower, error) {
	m, err := k.newInEachPart(ctx, first, c)
	if m == nil {
		return isolate.NoFollower{}, err
	}
	return m, err
}

// newInEachPart looks for the mistake of an entry whose first part is a BUG with a certificate. The result is nil if no mistake gives the first part, and if the
// arithmetic of the entry is not transformers'.
func (k *Names) newInEachPart(ctx context.Context, first *isolate.Trial, c *isolate.Certificate) (*inEachPart, error) {
	i := first.Isolator
	f, err := k.nameInFew(ctx, order.NameOf(first.Entry.Name).Role())
	if err != nil || f.edit == nil || first.Formula == nil || first.Wider() {
		return nil, err
	}
	e, err := i.Evidence(ctx, first.Node)
	if err != nil || e == nil {
		return nil, err
	}
	tries, err := k.Forms.Tries(ctx, e)
	if err != nil || len(tries) == 0 || tries[0] == nil || !tries[0].Strict() {
		return nil, err
	}
	m := &inEachPart{names: k, edit: f.edit, a: tries[0]}
	if c.Sampled > 0 {
		m.columns = first.Y.Shape[len(first.Y.Shape)-1]
	}
	j, err := givenWith(ctx, first, m.a, f.edit)
	if j == nil || err != nil {
		return nil, err
	}
	m.given = true
	return m, nil
}

// Look computes a part, gives the trial its value, and judges the part with the mistake. It does nothing on nil, and after a part that the mistake does not give.
func (m *inEachPart) Look(ctx context.Context, part *isolate.Trial) error {
	if m == nil || !m.given {
		return nil
	}
	if err := part.Prepare(ctx); err != nil {
		return err
	}
	s, err := suspectIn(ctx, &isolate.Evidence{Trial: part, Left: nil}, m.a)
	if err != nil {
		return err
	}
	d, err := ModelOf(part.Isolator).Apply(*m.edit, s.entry)
	if err != nil {
		return err
	}
	if d == nil {
		m.given = false
		return nil
	}
	call := s.entry.Call
	call.Open = true
	kept, err := s.entry.Program.Keep(call, nil)
	if err != nil {
		return err
	}
	own, err := kept.Own()
	if err != nil {
		return err
	}
	own.Columns = m.columns
	part.Value = &own
	x, err := kept.Eval(d)
	if err != nil {
		return err
	}
	j, err := part.Hold(x, m.a, false)
	if err != nil {
		return err
	}
	if len(j.Outside()) == 0 && !j.Guesses() {
		return nil
	}
	p, edited := d.Whole(s.entry.Call)
	whole, err := s.given(ctx, p, edited) // also in orders of summation
	m.given = whole != nil
	return err
}

// End notes whether the mistake gives all parts. It does nothing on nil.
func (m *inEachPart) End(t *isolate.Trial) {
	if m == nil || !m.given {
		return
	}
	m.names.mu.Lock()
	m.names.Parts[t.Node] = true
	m.names.mu.Unlock()
}
