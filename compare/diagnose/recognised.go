package diagnose

import (
	"math"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// variant is a hypothesis of a recogniser.
func (s *search) variant(rank int, m Mistake, make func(e *Entry) *program.Edited) error {
	return s.try(hypothesis{class: program.Known, rank: rank, make: make, say: func(*Entry) Name { return m.name() }})
}

// recognised looks at masks, softmaxes, norms, gates and positions.
func (s *search) recognised() error {
	for _, look := range []func() error{s.activations, s.functions, s.ids, s.masks, func() error { return tiledHeads(s) }, s.seen, s.lowered, s.after, s.frequencies, s.positions, s.norms, s.softmaxParts, s.softmaxes, s.meansOfParts, s.slots, s.kept} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// masks tries windows, and none, and masks that are not causal.
func (s *search) masks() error {
	right, ok := s.window()
	if !ok {
		return nil
	}
	name := func(window float64) Name {
		m := Mistake{Place: "mask"}
		switch {
		case window < 0:
			m.Kind = "mask.not-causal"
			return m.name()
		case right == 0:
			m.Kind, m.By = "mask.window-added", literal(window)
			return m.name()
		case window == 0:
			m.Kind = "mask.window-left-out"
		default:
			m.Kind = "mask.window"
		}
		m.X, m.Right = some(window), some(right)
		n := m.name()
		n.Fields = s.fields(right, Window)
		return n
	}
	windows := []float64{0, -1, right + 1, right - 1, float64(s.m.List.Config.SlidingWindow), 2 * right, math.Floor(right / 2), right + 2, right - 2}
	for rank, w := range windows {
		if w == right || w < -1 || w <= 0 && rank > 1 {
			continue
		}
		n := name(w)
		if err := s.try(hypothesis{
			class: program.Known, rank: rank, say: func(*Entry) Name { return n },
			make: func(e *Entry) *program.Edited { return s.windowed(e, w) },
		}); err != nil {
			return err
		}
	}
	exchanged := Mistake{Kind: "mask.layers-exchanged", Place: "mask"}
	h := hypothesis{class: program.Known, rank: 50, weak: true, say: func(*Entry) Name { return exchanged.name() }}
	h.make = func(e *Entry) *program.Edited {
		if all := e.Program.Of(program.Mask); len(all) == 0 {
			return nil
		} else if e.Program.Steps[all[0]].Value == 0 {
			return e.Program.Windows(float64(s.m.List.Config.SlidingWindow))
		}
		return e.Program.Windows(0)
	}
	if err := s.try(h); err != nil {
		return err
	}
	for rank, x := range maskValues {
		m := Mistake{Kind: "mask.value-small", Place: "mask", X: some(x)}
		if err := s.variant(60+rank, m, func(e *Entry) *program.Edited {
			ed := e.Program.Edit()
			for _, i := range e.Program.Of(program.Mask) {
				ed.Pass(i, ed.Max(ed.Move(i), ed.Literal(-x)))
			}
			return ended(ed)
		}); err != nil {
			return err
		}
	}
	for _, n := range []int{1, -1} {
		m := Mistake{Kind: "mask.key-ahead", Place: "mask"}
		if n < 0 {
			m.Kind = "mask.own-key-masked"
		}
		if err := s.variant(100, m, func(e *Entry) *program.Edited { return e.Program.Ahead(n) }); err != nil {
			return err
		}
	}
	return nil
}

// tiledHeads tries keys and values whose heads are tiled, where both products of an attention are in the program.
func tiledHeads(s *search) error {
	return s.variant(110, Mistake{Kind: "heads.tiled"}, func(e *Entry) *program.Edited { return e.Program.Tiled() })
}

// window is that of the masks, 0 for none, as the largest shows it; ok is false where there are no masks.
func (s *search) window() (window float64, ok bool) {
	size := 0
	for _, e := range s.entries {
		for _, i := range e.Program.Of(program.Mask) {
			if st := &e.Program.Steps[i]; product(st.Shape) > size {
				window, size = st.Value, product(st.Shape)
			}
		}
	}
	return window, size > 0
}

// windowed has masks of another window, negative for none that is causal. An entry that is a constant among masks is one that hides nothing,
// as of one token within its window.
func (s *search) windowed(e *Entry, window float64) *program.Edited {
	if len(e.Program.Of(program.Mask)) > 0 || len(e.Program.Steps) > 1 {
		return e.Program.Windows(window)
	}
	return s.masking(e, func(q, k float64, _, _ int, _ bool) bool {
		return window < 0 || k <= q && (window == 0 || k > q-window)
	})
}

// maskValues are what masked scores may be lowered by, in place of the largest number.
var maskValues = []float64{1, 2, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 1000, 1024}

// fieldWords are what the fields of a number are called that is known by what stands around it.
var fieldWords = map[TermKind]string{Epsilon: "eps", SoftCap: "softcap", Window: "window", Theta: "theta", Scaling: ".factor"}

// fields are those of the configuration that have a number: those that are called what it is, else all of them, but for one that
// people type, which is that of a field by chance.
func (s *search) fields(v float64, what TermKind) []Field {
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
	rank := 10000 // after other frequencies
	try := func(m Mistake, change func(en *Entry) func(e *program.Editor, v program.Var) program.Var) error {
		rank++
		m.Place = positionsSite
		return s.variant(rank, m, func(e *Entry) *program.Edited { return e.Program.Positions(change(e)) })
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
	if err := s.otherPositions(); err != nil {
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
		rank++
		m := Mistake{Kind: "position.multiplied", Place: positionsSite, By: literal(k)}
		h := hypothesis{class: program.Known, rank: rank, weak: true, say: func(*Entry) Name { return m.name() }}
		h.make = func(e *Entry) *program.Edited { return e.Program.Positions(times(k)) }
		if err := s.try(h); err != nil {
			return err
		}
	}
	return nil
}

// maxSlots is how many slots of a cache that nobody wrote are tried in a softmax.
const maxSlots = 32

// ids tries other rows of a table than those of the ids: the next ones, and for ids beyond it the last.
func (s *search) ids() error {
	all := s.first.Program.Of(program.Lookup)
	if len(all) == 0 {
		return nil
	}
	for rank, c := range []struct {
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
		if err := s.variant(rank, Mistake{Kind: c.kind, Place: "lookup.ids"}, func(e *Entry) *program.Edited {
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
			if err := s.variant(a, m, func(e *Entry) *program.Edited { return e.Program.SoftmaxOver(a) }); err != nil {
				return err
			}
		}
	}
	if all := p.Softmaxes(); len(all) > 0 {
		for rank, base := range []float64{2, 10} {
			m := Mistake{Kind: "softmax.base", Place: s.site(s.first, all[0]), X: some(base), By: literal(math.Log(base))}
			if err := s.variant(50+rank, m, func(e *Entry) *program.Edited { return e.Program.SoftmaxOfScaled(math.Log(base)) }); err != nil {
				return err
			}
		}
		for k := 1; k <= maxSlots; k++ {
			n := float64(k)
			m := Mistake{Kind: "softmax.slots-unwritten", Place: s.site(s.first, all[0]), X: some(n)}
			h := hypothesis{
				class: program.Known, rank: 100 + k, solved: 1, make: func(e *Entry) *program.Edited { return e.Program.SoftmaxWith(n) },
				say: func(*Entry) Name { return m.name() },
			}
			if err := s.try(h); err != nil {
				return err
			}
		}
	}
	if all := p.Means(); len(all) > 0 {
		m := Mistake{Kind: "norm.layernorm", Place: s.site(s.first, all[0])}
		if err := s.variant(0, m, func(e *Entry) *program.Edited { return e.Program.MeanOff() }); err != nil {
			return err
		}
	}
	if all := p.TakenOff(); len(all) > 0 {
		m := Mistake{Kind: "norm.rmsnorm", Place: s.site(s.first, all[0])}
		if err := s.variant(0, m, func(e *Entry) *program.Edited { return e.Program.MeanKept() }); err != nil {
			return err
		}
	}
	if all := p.Gates(); len(all) > 0 {
		m := Mistake{Kind: "sparsity.not-shifted", Place: s.site(s.first, all[0])}
		if err := s.variant(0, m, func(e *Entry) *program.Edited { return e.Program.Unshifted() }); err != nil {
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
