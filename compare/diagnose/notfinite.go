package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
	what := "infinite: a number is too large for its type"
	switch {
	case nan && (up || down):
		what = "NaN or infinite: a number is too large for its type"
	case nan:
		what = "NaN: memory that was never written, or an operation without a result, such as 0/0"
	case down && !up:
		what = "-infinity: they are masked or suppressed, or a number is too large for its type"
	}
	if where := s.indexes(); where != "" {
		what = where + " are " + what
	} else {
		what = "elements are " + what
	}
	return s.try(hypothesis{
		class: program.InputOf, rank: 30000, exact: true, say: func(*Entry) Name { return Name{What: what} },
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

// indexes says at which indexes of an axis what is left of the first entry lies, where that is a few; empty where it is nowhere.
func (s *search) indexes() string {
	axes := s.m.List.Entries[s.first.Node.Entry].Axes
	shape := s.first.Program.Out.Shape()
	if len(axes) != len(shape) {
		return ""
	}
	var words []string
	for a, size := range shape {
		inner := product(shape[a+1:])
		var at []int
		for _, i := range s.first.Left {
			if k := i / inner % size; !slices.Contains(at, k) {
				at = append(at, k)
			}
		}
		if slices.Sort(at); len(at) < size && len(at) <= 4 {
			words = append(words, fmt.Sprintf("%s %s", axisWords(axes[a]), strings.Trim(strings.Join(strings.Fields(fmt.Sprint(at)), ", "), "[]")))
		}
	}
	return strings.Join(words, ", ")
}
