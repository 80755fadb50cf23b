package diagnose

import (
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// A subject is what mistakes are applied to: the model, whose entries, tensors and weights are read when an edit needs them. A subject keeps
// the first error.
type subject struct {
	m       *Model
	numbers numbers // of the configuration
	// measured is set for a search that measures how far every hypothesis is from the trace. Such a search drops no hypothesis after a look at a few
	// elements.
	measured bool
	err      error
}

func newSubject(m *Model) *subject { return &subject{m: m, numbers: numbersOf(m.List.Config)} }

// Apply makes the edit of a mistake in the program of an entry. The edit is nil if the mistake does not fit the entry, and for the zero Mistake. The
// error comes from reading the trace or the weights, or reports a mistake that cannot be applied.
func (m *Model) Apply(mistake Mistake, e *Entry) (*program.Edited, error) {
	s := newSubject(m)
	d := s.apply(mistake, e)
	return d, s.err
}

// apply is [Model.Apply], and keeps the error. After an error the edit is nil.
func (s *subject) apply(m Mistake, e *Entry) *program.Edited {
	if m.First != "" {
		return s.applyBoth(m, e)
	}
	if m.Tokens.Some {
		m.Tokens = Tokens{}
		return onlyIn(s, e, s.apply(m, e), leftPart(s, e))
	}
	if m.Only != "" {
		part := m.Only.of(s, e)
		m.Only = ""
		return onlyIn(s, e, s.apply(m, e), part)
	}
	if m == (Mistake{}) {
		return nil
	}
	row := catalogue()[m.Kind]
	if row != nil && row.Apply != nil {
		d := row.Apply(s, e, m)
		if s.err != nil {
			return nil
		}
		return d
	}
	if d, ok := s.edit(m); ok {
		return d.Apply(e.signed(s.m))
	}
	s.failed(notApplied(m.Kind))
	return nil
}

// edit parses the edit of steps in a mistake; ok is false for a mistake without an edit.
func (s *subject) edit(m Mistake) (d edit.Edit, ok bool) {
	if m.Edit == "" {
		return d, false
	}
	d, err := edit.ParseEdit(m.Edit)
	return d, !s.failed(err)
}

// place is the first place of a mistake's edit; the zero value without an edit.
func (s *subject) place(m Mistake) edit.Place {
	d, ok := s.edit(m)
	if !ok {
		return edit.Place{}
	}
	return d.At[0]
}

// placed is the text of a place for [Mistake.Edit].
func placed(at ...edit.Place) string { return edit.Edit{At: at}.Text() }

// failed reports whether err is an error, and keeps the first error of the subject, which ends the search.
func (s *subject) failed(err error) bool {
	if s.err == nil {
		s.err = err
	}
	return err != nil
}

// valueAt returns the values of a variable in the entry's own program, or false if an input that the variable is computed from has no value. Callers
// must not write to the values.
func (s *subject) valueAt(e *Entry, v program.Var) ([]float64, bool) {
	d, err := edit.NewEditor(e.Program).Only(v)
	if err != nil || !e.known(d.Program) {
		return nil, false
	}
	if !e.known(e.Program) {
		p, c := d.Whole(e.Call)
		x, err := p.Eval(c)
		return x.Data, err == nil && len(x.Data) > 0
	}
	kept, err := s.m.values(e)
	if s.failed(err) {
		return nil, false
	}
	x, err := kept.Eval(d)
	if s.failed(err) || len(x.Data) == 0 {
		return nil, false
	}
	return x.Data, true
}

// known reports whether an entry has a value for each input of a program.
func (e *Entry) known(p *program.Program) bool {
	for _, i := range edit.StepsOf(p, program.Input) {
		if k := p.Steps[i].Index(); k < len(e.Call.In) && e.Call.In[k].Shape == nil {
			return false
		}
	}
	return true
}
