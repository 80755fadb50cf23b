package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// generator yields mistakes that the entries of a search may have, the most plausible first. It reads what the search has found so far where one find makes
// others needless.
type generator func(s *search) iter.Seq[Mistake]

// tried is the stage of some generators.
func tried(all ...generator) stage { return func(s *search) error { return s.from(all...) } }

// withSolved is the stage of generators that solve a number from the elements.
func withSolved(all ...generator) stage {
	return func(s *search) error {
		for _, g := range all {
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

// from tries what generators yield.
func (s *search) from(all ...generator) error {
	for _, g := range all {
		for m := range g(s) {
			if err := s.try(s.hypothesis(m)); err != nil {
				return err
			}
		}
	}
	return s.err
}

// hypothesis is that the entries have a mistake. A mistake without a kind is an edit of steps.
func (s *search) hypothesis(m Mistake) hypothesis {
	h := hypothesis{of: m.Key(), make: func(e *Entry) *program.Edited { return s.apply(m, e) }, say: func(*Entry) Name { return s.name(m) }}
	d, edits := s.edit(m)
	if edits && m.Kind == "" {
		h.class, h.edit, h.weak = d.Class, &d, d.Class == program.Order && (d.Prim == program.Max || d.Prim == program.Add)
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
	if m.Tokens.Some {
		h.edit, h.at = nil, program.Place{}
		for _, e := range s.entries {
			_, n := e.leftTokens(s.tokenAxis(e))
			h.solved += n
		}
	}
	if m.By.Kind == Others { // the words say which entries have it
		_, other, _ := strings.Cut(m.By.Name, "=")
		other, _, _ = strings.Cut(other, ",")
		h.other = func(e *Entry) *program.Edited { return s.apply(inAll(m, other), e) }
		if m.Of.Kind == Weight {
			h.class = program.Leaf
		}
	}
	return h
}

// numberKinds are numbers of a formula, by what stands around them.
var numberKinds = []TermKind{Epsilon, Floor, SoftCap, AFactor, ADivisor, SomeValue, AName}

// name is a mistake in words, with the fields of the configuration that have its numbers.
func (s *search) name(m Mistake) Name {
	if d, ok := s.edit(m); ok && m.Kind == "" {
		spelled := s.words(s.first, d)
		spelled.Edit, spelled.Tokens = m.Edit, m.Tokens
		m = spelled
	}
	n := m.name()
	row := catalogue()[m.Kind]
	if row == nil || row.Field == "" || row.Field == OfItself && !slices.Contains(numberKinds, m.Of.Kind) {
		return n
	}
	switch {
	case !m.Right.Has:
	case row.Field == AName:
		n.Fields = slices.DeleteFunc(s.having(m.Right.Value), func(f Field) bool { return field(f.Name) != m.Of.Name })
	case row.Field == OfItself:
		n.Fields = s.fieldsOf(m.Right.Value, m.Of.Kind)
	default:
		n.Fields = s.fields(m.Right.Value, row.Field)
	}
	if m.Called != "" {
		n.Equal = slices.DeleteFunc(s.having(m.X.Value), func(f Field) bool { return !slices.Contains(fieldNames(m.Called), f.Name) })
	}
	return n
}
