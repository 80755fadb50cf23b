package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

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
		say: func(*Entry) Name { return Name{What: "the result is clamped to ±" + short(limit), Value: &limit} },
	})
}
