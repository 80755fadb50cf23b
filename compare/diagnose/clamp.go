package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// bounded looks for a least or a largest number of the result alone: that of what is left which several elements have.
func (s *search) bounded() error {
	for _, sign := range []float64{1, -1} {
		limit, n := math.Inf(1), 0
		for _, e := range s.entries {
			y, _ := e.Target()
			for _, i := range e.Left {
				switch v := sign * y[i]; {
				case v < limit:
					limit, n = v, 1
				case v == limit:
					n++
				}
			}
		}
		if n < shownElements || math.IsInf(limit, 0) || limit == 0 {
			continue
		}
		value := sign * limit
		m := Mistake{Kind: "result.clipped-below", X: some(value)}
		if sign < 0 {
			m.Kind = "result.clipped-above"
		}
		if err := s.try(hypothesis{
			class: program.Inserted, solved: 1,
			make: func(e *Entry) *program.Edited {
				ed := e.Program.Edit()
				if sign > 0 {
					ed.Return(ed.Max(e.Program.Out, ed.Literal(value)))
				} else {
					ed.Return(ed.Neg(ed.Max(ed.Neg(e.Program.Out), ed.Literal(-value))))
				}
				return ended(ed)
			},
			say: func(*Entry) Name { return m.name() },
		}); err != nil {
			return err
		}
	}
	return nil
}

// clamped looks for a limit of the result: the largest size of what is left, if more than one element has it.
func (s *search) clamped() error {
	limit, n := 0.0, 0
	for _, e := range s.entries {
		y, _ := e.Target()
		for _, i := range e.Left {
			switch v := math.Abs(y[i]); {
			case v > limit:
				limit, n = v, 1
			case v == limit:
				n++
			}
		}
	}
	if n < shownElements || limit == 0 || math.IsInf(limit, 0) {
		return nil
	}
	return s.try(hypothesis{
		class: program.Inserted, solved: 1,
		make: func(e *Entry) *program.Edited {
			ed := e.Program.Edit()
			c := ed.Literal(limit)
			ed.Return(ed.Neg(ed.Max(ed.Neg(c), ed.Neg(ed.Max(ed.Neg(c), e.Program.Out)))))
			return ended(ed)
		},
		say: func(*Entry) Name { return Mistake{Kind: "result.clamped", X: some(limit)}.name() },
	})
}
