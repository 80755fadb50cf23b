package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// leastDropped is how many unexplained elements must be 0.
const leastDropped = 2

// dropout yields dropout that was left on: some elements of the result are 0, and the other elements are multiplied by one number.
func dropout(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		zeros := 0
		for _, e := range s.entries {
			y, _ := e.Target()
			for _, i := range e.Left {
				if y[i] == 0 {
					zeros++
				}
			}
		}
		if zeros < leastDropped {
			return
		}
		var ratios []float64
		for _, e := range s.entries {
			own, ok := s.valueOf(e, nil)
			y, _ := e.Target()
			if !ok || len(own.Data) != len(y) {
				return
			}
			for _, i := range e.Left {
				if y[i] != 0 && own.Data[i] != 0 {
					ratios = append(ratios, y[i]/own.Data[i])
				}
			}
		}
		if len(ratios) < shownElements {
			return
		}
		slices.Sort(ratios)
		middle := ratios[len(ratios)/2]
		if part := math.Round(100*(1-1/middle)) / 100; middle > 1 && part > 0 {
			yield(Mistake{Kind: "dropout.left-on", X: some(1 / (1 - part)), By: literal(1 - part), Picked: zeros})
		}
	}
}

// droppedOut sets the result to 0 where the port's tensor is 0, and multiplies it by a number elsewhere. Dropout is a separate operation, on the stored
// result.
func droppedOut(s *subject, e *Entry, m Mistake) *program.Edited {
	own, ok := s.asStored(e)
	y, _ := e.Target()
	if !ok || len(own.Data) != len(y) {
		return nil
	}
	for i, x := range own.Data {
		if x *= m.X.Value; y[i] == 0 {
			own.Data[i], own.Bound[i] = 0, 0
		} else {
			own.Data[i], own.Bound[i] = x, own.Bound[i]*m.X.Value+twoRoundings(x)
		}
	}
	return given(e, own)
}

// twoRoundings is the largest change of a result by two roundings of float32; the result is x at most. Ports may flush numbers below the normal range to
// zero.
func twoRoundings(x float64) float64 {
	if x = math.Abs(x); x == 0 {
		return 0
	}
	return 2*floats.RoundingError(hooks.F32, x) + min(x, floats.Flushed(hooks.F32))
}
