package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// generator yields mistakes that the entries of a search may have, the most plausible first. A generator reads what the search has found so far, if a
// find makes further mistakes needless.
type generator func(s *search) iter.Seq[Mistake]

// tried makes a stage from generators.
func tried(all ...generator) func(*search) error {
	return func(s *search) error { return s.from(all...) }
}

// withSolved makes a stage from generators that solve a number from the elements.
func withSolved(all ...generator) func(*search) error {
	return func(s *search) error {
		for _, g := range inDrawnOrder(s.m, all) {
			for m := range g(s) {
				h := s.hypothesis(m)
				h.solved++
				if err := s.try(h); err != nil {
					return err
				}
			}
		}
		return s.err
	}
}

// from tries the mistakes that generators yield.
func (s *search) from(all ...generator) error {
	for _, g := range inDrawnOrder(s.m, all) {
		for m := range g(s) {
			if err := s.try(s.hypothesis(m)); err != nil {
				return err
			}
			if s.stopped {
				return s.err
			}
		}
	}
	return s.err
}

// hypothesis is a mistake or a statement that the entries of a search may have.
type hypothesis struct {
	is        Mistake
	statement *statement // nil for a mistake
	class     edit.Class
	solved    int        // numbers that were solved from the elements
	edit      *edit.Edit // of a mistake without a kind, which is an edit of steps
	at        edit.Place // of the number
	number    float64
	weak      bool // see [Row.Weak]
	exact     bool // see [Row.Exact]
	addend    bool // an edit leaves the addend out, and the number is 0
	// of is equal for hypotheses that differ only in roundings and have one name.
	of string
}

// hypothesis returns the hypothesis that the entries have a mistake. A mistake without a kind is an edit of steps.
func (s *search) hypothesis(m Mistake) hypothesis {
	h := hypothesis{is: m, of: m.Key()}
	d, edits := s.edit(m)
	if edits && m.Kind == "" {
		h.class, h.edit, h.weak = d.Class, &d, weakEdit(&d)
	}
	if edits {
		h.at, h.number = d.At[0], d.Value
	}
	if row := catalogue()[m.Kind]; row != nil && m.Kind != "" {
		h.class, h.weak, h.exact = row.Class, row.Weak || row.WeakIf != nil && row.WeakIf(m), row.Exact
		if row.Alike != nil {
			h.of = row.Alike(m)
		}
		if row.Solved != nil {
			h.solved = row.Solved(m)
		}
	}
	if m.X.Has {
		h.number = m.X.Value
	}
	if m.Only != "" {
		h.edit, h.at = nil, edit.Place{}
		h.solved += strings.Count(string(m.Only), ",") + 1
	}
	if m.Tokens.Some {
		h.edit, h.at = nil, edit.Place{}
		for _, e := range s.entries {
			_, n := e.leftTokens(tokenAxis(s.subject, e))
			h.solved += n
		}
	}
	if m.By.Kind == Others && m.Of.Kind == Weight {
		h.class = edit.Leaf
	}
	return h
}

// weakEdit reports whether an edit of steps is named only if no other edit of its class gives the same elements: an order that is put back in the
// result is the order of another operand.
func weakEdit(d *edit.Edit) bool {
	switch d.Class {
	case edit.Order:
		return d.Prim == program.Max || d.Prim == program.Add
	case edit.Mapped:
		return d.Back && d.Map.Kind != edit.Weave // interleaved parts have names of their own
	}
	return false
}

// edited makes the program of an entry with a hypothesis; nil if the hypothesis does not fit the entry.
func (s *search) edited(h hypothesis, e *Entry) *program.Edited {
	if h.statement != nil {
		return h.statement.edit(e)
	}
	return s.apply(h.is, e)
}

// inOthers makes a hypothesis for entries outside of a mistake's list of pairs: these entries read what the first entry of the list reads. ok is
// false if the mistake has no list.
func (h hypothesis) inOthers() (other hypothesis, ok bool) {
	if h.is.By.Kind != Others {
		return h, false
	}
	_, of, _ := strings.Cut(h.is.By.Name, "=")
	of, _, _ = strings.Cut(of, ",")
	h.is = inAll(h.is, of)
	return h, true
}

// numberKinds are the kinds of numbers of a formula.
var numberKinds = []TermKind{Epsilon, Floor, SoftCap, AFactor, ADivisor, SomeValue, AName}

// undoing explains a factor that is the reciprocal of the factor by which an input of the entry was multiplied: the port reads the tensor before it is
// multiplied.
func undoing(s *search, m Mistake) Mistake {
	x := m.X.Value
	switch m.Kind {
	case "factor.inserted":
	case "weight.multiplied":
		x = m.By.X
	default:
		return m
	}
	for _, n := range s.first.Inputs {
		if f := s.m.factorOf(n.Entry, n.Pass); f != 0 && f != 1 && same(float64(float32(1/f)), x) {
			m.Called = undoesWords(m.Called, tensorTerm(s.m.List.Entries[n.Entry].Name).String())
			break
		}
	}
	return m
}

// name returns a hypothesis in words, with the fields of the configuration that have its numbers.
func (s *search) name(h hypothesis) Name {
	if h.statement != nil {
		return h.statement.name()
	}
	m := spelt(s, h)
	e := s.first
	if m.First != "" {
		e = s.after(m.First, e)
	}
	m = undoing(s, withCode(s.subject, e, m))
	n := m.name()
	row := catalogue()[m.Kind]
	if row == nil || row.Field == "" || row.Field == OfItself && !slices.Contains(numberKinds, m.Of.Kind) {
		return n
	}
	switch {
	case !m.Right.Has:
	case row.Field == AName:
		n.Fields = slices.DeleteFunc(s.numbers.having(m.Right.Value), func(f Field) bool { return field(f.Name) != m.Of.Name })
	case row.Field == OfItself:
		n.Fields = s.numbers.fieldsOrFunctions(m.Right.Value, m.Of.Kind)
	default:
		n.Fields = s.numbers.fields(m.Right.Value, row.Field)
	}
	if m.Called != "" {
		n.Equal = slices.DeleteFunc(s.numbers.having(m.X.Value), func(f Field) bool { return !slices.Contains(fieldNames(m.Called), f.Name) })
	}
	return n
}
