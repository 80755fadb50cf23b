package diagnose

import (
	"math"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// variant is a hypothesis of a recogniser.
func (s *search) variant(m Mistake, make func(e *Entry) *program.Edited) error {
	return s.try(hypothesis{class: program.Known, make: make, say: func(*Entry) Name { return m.name() }})
}

// recognised looks at masks, softmaxes, norms, gates and positions.
func (s *search) recognised() error {
	for _, look := range []func() error{func() error { return s.from(otherActivations, otherTanhs) }, s.ids, s.slots, func() error { return s.from(windows) }, s.norms, func() error { return s.from(tiledHeads) }, s.softmaxParts, func() error { return s.from(sights, maskedScores, maskedLate) }, s.softmaxes, s.kept, s.meansOfParts, func() error { return s.from(rotary) }, func() error { return fitted(solvedBase, solvedBases)(s) }, func() error { return s.from(positions) }} {
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

// maxSlots is how many slots of a cache that nobody wrote are tried in a softmax.
const maxSlots = 32

// ids tries other rows of a table than those of the ids: the next ones, and for ids beyond it the last.
func (s *search) ids() error {
	all := s.first.Program.Of(program.Lookup)
	if len(all) == 0 {
		return nil
	}
	for _, c := range []struct {
		kind   Kind
		change func(ed *program.Editor, v program.Var, rows int) program.Var
	}{
		{"ids.row-after", func(ed *program.Editor, v program.Var, _ int) program.Var { return ed.Add("", v, ed.Literal(1)) }},
		{"ids.row-before", func(ed *program.Editor, v program.Var, _ int) program.Var { return ed.Add("", v, ed.Literal(-1)) }},
		{"ids.last-row", func(ed *program.Editor, v program.Var, rows int) program.Var {
			return ed.Neg(ed.Max(ed.Neg(v), ed.Literal(float64(1-rows))))
		}},
		{"ids.row-zero", func(ed *program.Editor, v program.Var, _ int) program.Var { return ed.Mul("", v, ed.Literal(0)) }},
	} {
		if err := s.variant(Mistake{Kind: c.kind, Place: "lookup.ids"}, func(e *Entry) *program.Edited {
			ed := e.Program.Edit()
			for _, i := range e.Program.Of(program.Lookup) {
				st := e.Program.Steps[i]
				ed.Read(i, 0, c.change(ed, st.Args[0], st.Rows))
			}
			return ended(ed)
		}); err != nil {
			return err
		}
	}
	return nil
}

// norms tries the variants of softmaxes, norms and gates.
func (s *search) norms() error {
	p := s.first.Program
	if all := p.Softmaxes(); len(all) > 0 {
		for a := 1; a < len(p.Steps[all[0]].Shape); a++ {
			axis := "axis"
			if axes := s.m.List.Entries[s.first.Node.Entry].Axes; len(axes) > a {
				axis = axisWords(axes[len(axes)-1-a])
			}
			m := Mistake{Kind: "softmax.axis", Place: s.site(s.first, all[0]), Axis: axis}
			if err := s.variant(m, func(e *Entry) *program.Edited { return e.Program.SoftmaxOver(a) }); err != nil {
				return err
			}
		}
	}
	if all := p.Softmaxes(); len(all) > 0 {
		for _, base := range []float64{2, 10} {
			m := Mistake{Kind: "softmax.base", Place: s.site(s.first, all[0]), X: some(base), By: literal(math.Log(base))}
			if err := s.variant(m, func(e *Entry) *program.Edited { return e.Program.SoftmaxOfScaled(math.Log(base)) }); err != nil {
				return err
			}
		}
		for k := 1; k <= maxSlots; k++ {
			n := float64(k)
			m := Mistake{Kind: "softmax.slots-unwritten", Place: s.site(s.first, all[0]), X: some(n)}
			h := hypothesis{
				class: program.Known, solved: 1, make: func(e *Entry) *program.Edited { return e.Program.SoftmaxWith(n) },
				say: func(*Entry) Name { return m.name() },
			}
			if err := s.try(h); err != nil {
				return err
			}
		}
	}
	if all := p.Means(); len(all) > 0 {
		m := Mistake{Kind: "norm.layernorm", Place: s.site(s.first, all[0])}
		if err := s.variant(m, func(e *Entry) *program.Edited { return e.Program.MeanOff() }); err != nil {
			return err
		}
	}
	if all := p.TakenOff(); len(all) > 0 {
		m := Mistake{Kind: "norm.rmsnorm", Place: s.site(s.first, all[0])}
		if err := s.variant(m, func(e *Entry) *program.Edited { return e.Program.MeanKept() }); err != nil {
			return err
		}
	}
	if all := p.Gates(); len(all) > 0 {
		m := Mistake{Kind: "sparsity.not-shifted", Place: s.site(s.first, all[0])}
		if err := s.variant(m, func(e *Entry) *program.Edited { return e.Program.Unshifted() }); err != nil {
			return err
		}
	}
	return nil
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
