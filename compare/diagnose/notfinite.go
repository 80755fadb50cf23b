package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// notFinite looks whether all that is left is NaN or infinite: memory that was not written, or a number that is too large for its type.
func (s *search) notFinite() error {
	nan, up, down := false, false, false
	for _, e := range s.entries {
		y, _ := e.Target()
		for _, i := range e.Left {
			if y[i]-y[i] == 0 {
				return nil
			}
			nan, up, down = nan || y[i] != y[i], up || math.IsInf(y[i], 1), down || math.IsInf(y[i], -1)
		}
	}
	shape := s.first.Program.Out.Shape()
	r := Relation{Kind: "elements.infinite", At: makeSpots(s.spots(shape, s.first.Left)...)}
	switch {
	case nan && (up || down):
		r.Kind = "elements.nan-or-infinite"
	case nan:
		r.Kind = "elements.nan"
	case down && !up:
		r.Kind = "elements.minus-infinity"
	}
	return s.try(hypothesis{
		class: program.InputOf, exact: true, say: func(*Entry) Name { return r.name() },
		make: func(e *Entry) *program.Edited {
			v, ok := s.valueOf(e, nil)
			y, _ := e.Target()
			if !ok || len(y) != len(v.Data) {
				return nil
			}
			for i := range y {
				if y[i]-y[i] != 0 && v.Data[i]-v.Data[i] == 0 {
					v.Data[i], v.Bound[i] = y[i], 0
				}
			}
			return given(e, v)
		},
	})
}
