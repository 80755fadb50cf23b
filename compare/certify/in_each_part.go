package certify

import "github.com/tracediff/tracediff/compare/diagnose"

// A product with a large vocabulary takes longer than all that a search does. So where the first tokens of an entry are wrong, what is wrong with them is looked
// for at once. Then each later part is computed once, as it should be and with the mistake: what is kept of the program serves both.

// inEachPart follows a mistake through the parts of an entry.
type inEachPart struct {
	named   *named
	a       *arithmetic
	columns int  // of the parts, whose bounds are sampled; 0 where they are not, see [program.Value.Columns]
	given   bool // every part so far
}

// newInEachPart looks for what is wrong with an entry whose first part is a BUG with a certificate. It is nil if that has no name, and if the entry's own
// arithmetic is not transformers'.
func newInEachPart(first *trial, c *Certificate) (*inEachPart, error) {
	i := first.i
	f, err := i.nameInFew(first.ctx, diagnose.Role(first.entry.Name))
	if err != nil || f.edit == nil || first.formula == nil || first.wider() {
		return nil, err
	}
	e, err := i.evidence(first.ctx, first.node)
	if err != nil || e == nil {
		return nil, err
	}
	tries, err := i.tries(first.ctx, e)
	if err != nil || len(tries) == 0 || tries[0] == nil || !tries[0].strict() {
		return nil, err
	}
	m := &inEachPart{named: f, a: tries[0]}
	if c.Sampled > 0 {
		m.columns = first.y.Shape[len(first.y.Shape)-1]
	}
	j, err := givenWith(first, m.a, f.edit)
	m.given = j != nil
	return m, err
}

// look computes a part, gives the trial its value, and judges the part with the mistake.
func (m *inEachPart) look(part *trial) error {
	if err := part.prepare(); err != nil {
		return err
	}
	s, err := suspectIn(&evidence{part, nil}, m.a)
	if err != nil {
		return err
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
	part.value = &own
	d := m.named.edit(s.entry)
	if !m.given || d == nil {
		m.given = false
		return nil
	}
	x, err := kept.Eval(d)
	if err != nil {
		return err
	}
	j, err := part.judge(x, m.a, false)
	if err != nil {
		return err
	}
	if len(j.outside()) == 0 && !j.guesses() {
		return nil
	}
	whole, err := s.given(d.Whole(s.entry.Call)) // also in orders of summation
	m.given = whole != nil
	return err
}

// end notes whether the mistake gives all parts. It does nothing on nil.
func (m *inEachPart) end(t *trial) {
	if m == nil || !m.given {
		return
	}
	t.i.mu.Lock()
	m.named.parts[t.node] = true
	t.i.mu.Unlock()
}
