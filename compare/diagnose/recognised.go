package diagnose

import (
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// variant is a hypothesis of a recogniser.
func (s *search) variant(m Mistake, make func(e *Entry) *program.Edited) error {
	return s.try(hypothesis{class: program.Known, make: make, say: func(*Entry) Name { return m.name() }})
}

// recognised looks at masks, softmaxes, norms, gates and positions.
func (s *search) recognised() error {
	for _, look := range []func() error{func() error {
		return s.from(otherActivations, otherTanhs, otherIDs, heldSlots, windows, softmaxVariants, normVariants, tiledHeads, softmaxParts, sights, maskedScores, maskedLate, softmaxesElsewhere, cachedSlots, meansOfParts, rotary)
	}, func() error { return withSolved(solvedBase)(s) }, func() error { return s.from(positions) }} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// fieldWords are what the fields of a number are called that is known by what stands around it.
var fieldWords = map[TermKind]string{Epsilon: "eps", SoftCap: "softcap", Window: "window", Theta: "theta", Scaling: ".factor"}

// having are the fields of the configuration that have a number.
func (s *subject) having(v float64) (all []Field) {
	for _, f := range s.numbers {
		if f.plain && same(f.value, v) {
			all = append(all, Field{f.field, f.value})
		}
	}
	return all
}

// fields are those of the configuration that have a number: those that are called what it is, else all of them, but for one that
// people type, which is that of a field by chance.
func (s *subject) fields(v float64, what TermKind) []Field {
	var called []Field
	all := s.having(v)
	for _, f := range all {
		if w := fieldWords[what]; w != "" && strings.Contains(f.Name, w) {
			called = append(called, f)
		}
	}
	if len(called) > 0 {
		return called
	} else if typed(v) {
		return nil
	}
	return all
}

// axisWords are what an axis counts, in the plural.
func axisWords(a byte) string {
	switch a {
	case 't':
		return "tokens"
	case 'h':
		return "heads"
	case 's':
		return "keys"
	case 'b':
		return "batch"
	case 'a':
		return "streams"
	case 'l':
		return "layers"
	case 'v':
		return "vocabulary"
	}
	return "channels"
}

// headsAxis is what an axis of heads counts.
const headsAxis = "heads"
