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
	for _, look := range []func() error{s.activations, s.functions, func() error {
		return s.from(otherIDs, heldSlots, windows, softmaxVariants, normVariants, tiledHeads, softmaxParts, sights, maskedScores, maskedLate, softmaxesElsewhere, cachedSlots, meansOfParts)
	}, s.frequencies, s.positions} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// fieldWords are what the fields of a number are called that is known by what stands around it.
var fieldWords = map[TermKind]string{Epsilon: "eps", SoftCap: "softcap", Window: "window", Theta: "theta", Scaling: ".factor"}

// fields are those of the configuration that have a number: those that are called what it is, else all of them, but for one that
// people type, which is that of a field by chance.
func (s *subject) fields(v float64, what TermKind) []Field {
	var all, called []Field
	for _, f := range s.numbers {
		if f.plain && same(f.value, v) {
			all = append(all, Field{f.field, f.value})
			if w := fieldWords[what]; w != "" && strings.Contains(f.field, w) {
				called = append(called, Field{f.field, f.value})
			}
		}
	}
	if len(called) > 0 {
		return called
	} else if typed(v) {
		return nil
	}
	return all
}

// positionsSite is the step of names of other positions.
const positionsSite = "positions"

// positions tries other positions of the tokens of a pass.
func (s *search) positions() error {
	if len(s.first.Program.Of(program.Angle)) == 0 {
		return nil
	}
	plus := func(k float64) func(e *program.Editor, v program.Var) program.Var {
		return func(e *program.Editor, v program.Var) program.Var { return e.Add("", v, e.Literal(k)) }
	}
	times := func(k float64) func(e *program.Editor, v program.Var) program.Var {
		return func(e *program.Editor, v program.Var) program.Var { return e.Mul("", v, e.Literal(k)) }
	}
	if err := s.otherPlace(); err != nil {
		return err
	}
	try := func(m Mistake, change func(en *Entry) func(e *program.Editor, v program.Var) program.Var) error {
		m.Place = positionsSite
		return s.variant(m, func(e *Entry) *program.Edited { return e.Program.Positions(change(e)) })
	}
	always := func(f func(e *program.Editor, v program.Var) program.Var) func(*Entry) func(e *program.Editor, v program.Var) program.Var {
		return func(*Entry) func(e *program.Editor, v program.Var) program.Var { return f }
	}
	for _, k := range []int{1, -1, 2, -2} {
		m := Mistake{Kind: "position.first-at", N: k}
		if k < 0 {
			m.Kind = "position.behind-pass"
		}
		if err := try(m, always(plus(float64(k)))); err != nil {
			return err
		}
	}
	if err := try(Mistake{Kind: "position.all-zero"}, always(times(0))); err != nil {
		return err
	}
	if err := try(Mistake{Kind: "position.from-zero"}, func(en *Entry) func(e *program.Editor, v program.Var) program.Var {
		return plus(-float64(s.m.Passes[en.Node.Pass].Past))
	}); err != nil {
		return err
	}
	if err := try(Mistake{Kind: "position.advanced"}, func(en *Entry) func(e *program.Editor, v program.Var) program.Var {
		return plus(float64(s.m.Passes[en.Node.Pass].Tokens))
	}); err != nil {
		return err
	}
	for _, k := range []float64{2, 4, 8, 16, 0.5, 0.25, 0.125} {
		m := Mistake{Kind: "position.multiplied", Place: positionsSite, By: literal(k)}
		h := hypothesis{class: program.Known, weak: true, say: func(*Entry) Name { return m.name() }}
		h.make = func(e *Entry) *program.Edited { return e.Program.Positions(times(k)) }
		if err := s.try(h); err != nil {
			return err
		}
	}
	return s.otherPositions()
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
