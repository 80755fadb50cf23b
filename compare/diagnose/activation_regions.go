package diagnose

import (
	"iter"
	"math"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// beyondLimits yields activations that are cut off beyond a limit of their input: 0 below the limit, the input itself above the limit, or both. The wrong
// elements are those beyond the limit, so that the limit lies between the inputs of wrong and of right elements.
func beyondLimits(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, own := range activationsOf {
			below, above, ok := limitsOf(s, own.Kind())
			if s.err != nil {
				return
			}
			if !ok {
				continue
			}
			m := Mistake{Place: own.Kind()}
			switch {
			case above == (limit{}):
				m.Kind, m.X = "activation.zero-below", some(-breakBetween(-below.right, -below.wrong))
			case below == (limit{}):
				m.Kind, m.X = "activation.input-above", some(breakBetween(above.right, above.wrong))
			default:
				m.Kind, m.X = "activation.saturated", some(breakBetween(max(above.right, -below.right), min(above.wrong, -below.wrong)))
			}
			if !yield(m) {
				return
			}
		}
	}
}

// limit lies between the nearest wrong and the nearest right input of an activation, on one side of 0; the zero value if no element of the side is wrong.
type limit struct{ wrong, right float64 }

// limitsOf returns the limits below and above 0 of the activation of a kind. ok is false if the entries have no such activation, or no wrong element with
// an input other than 0.
func limitsOf(s *search, kind string) (below, above limit, ok bool) {
	below, above = limit{math.Inf(-1), 0}, limit{math.Inf(1), 0}
	type element struct {
		x     float64
		wrong bool
	}
	var all []element
	for _, e := range s.entries {
		x := activationInput(s, e, kind)
		if x == nil {
			return limit{}, limit{}, false
		}
		wrong := map[int]bool{}
		for _, i := range e.Left {
			wrong[i] = true
		}
		for i, v := range x {
			all = append(all, element{v, wrong[i]})
		}
	}
	for _, e := range all {
		switch {
		case e.wrong && e.x < 0:
			below.wrong = max(below.wrong, e.x)
		case e.wrong:
			above.wrong = min(above.wrong, e.x)
		}
	}
	for _, e := range all {
		switch {
		case e.wrong:
		case e.x < 0 && e.x > below.wrong:
			below.right = min(below.right, e.x)
		case e.x > 0 && e.x < above.wrong:
			above.right = max(above.right, e.x)
		}
	}
	if math.IsInf(below.wrong, 0) {
		below = limit{}
	}
	if math.IsInf(above.wrong, 0) {
		above = limit{}
	}
	return below, above, below != above
}

// activationInput returns the input of the only activation of a kind in the program of an entry, an element for each element of the result; nil if there is no such input.
func activationInput(s *search, e *Entry, kind string) []float64 {
	all := pieces(e.Program, kind)
	if len(all) != 1 || program.Size(all[0].in.Shape) != e.elements() {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	ed.Return(all[0].in)
	k, err := s.m.values(e)
	if s.failed(err) {
		return nil
	}
	d := ended(ed)
	if d == nil {
		return nil
	}
	x, err := k.Eval(d)
	if err != nil {
		s.failed(outside(err))
		return nil
	}
	return x.Data
}

// cutActivation cuts an activation off beyond the limit of a mistake.
func cutActivation(_ *subject, e *Entry, m Mistake) *program.Edited {
	all := pieces(e.Program, m.Place)
	if len(all) == 0 {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	for _, one := range all {
		y, x := ed.Move(one.last), one.in
		if m.Kind != "activation.input-above" {
			least := m.X.Value
			if m.Kind == "activation.saturated" {
				least = -least
			}
			y = ed.Choose(ed.Gate(ed.Sub("", ed.Literal(least), x)), ed.Literal(0), y)
		}
		if m.Kind != "activation.zero-below" {
			y = ed.Choose(ed.Gate(ed.Sub("", x, ed.Literal(m.X.Value))), x, y)
		}
		ed.Pass(one.last, y)
	}
	return ended(ed)
}
