package diagnose

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// numberFunctions are what becomes of numbers that are others in each layer, where all are off in one way.
var numberFunctions = []struct {
	words string
	of    func(x float64) float64
}{
	{"twice what it should be", func(x float64) float64 { return 2 * x }},
	{"half of what it should be", func(x float64) float64 { return x / 2 }},
	{"multiplied by √2", func(x float64) float64 { return x * math.Sqrt2 }},
	{"divided by √2", func(x float64) float64 { return x / math.Sqrt2 }},
	{"taken with the other sign", func(x float64) float64 { return -x }},
	{"the square of what it should be", func(x float64) float64 { return x * x }},
	{"the root of what it should be", math.Sqrt},
	{"the reciprocal of what it should be", func(x float64) float64 { return 1 / x }},
	{"the quantile of both sides of a normal distribution, not of one side", func(x float64) float64 {
		return math.Sqrt2 * math.Erfinv((1+math.Erf(x/math.Sqrt2))/2)
	}},
}

// functionsOfNumbers tries functions of a number that the entries have different values of, as where each layer has its own.
func (s *search) functionsOfNumbers() error {
	t := s.first.signed(s.m)
	for _, i := range t.Numbers() {
		at, differ := t.Of(i), false
		for _, e := range s.entries {
			o := e.signed(s.m)
			for _, k := range o.Copies(at) {
				differ = differ || o.Steps[k].Value != t.Steps[i].Value
			}
		}
		if !differ {
			continue
		}
		what := s.numberWords(t.Program, i)
		for rank, f := range numberFunctions {
			right, value := t.Steps[i].Value, float64(float32(f.of(t.Steps[i].Value)))
			text := fmt.Sprintf("%s is %s: %s for %s", what, f.words, short(value), short(right))
			if err := s.try(hypothesis{
				class: program.Constant, rank: 30000 + rank, at: at, say: func(e *Entry) Name { return Name{What: text, Site: s.site(s.first, i)} },
				make: func(e *Entry) *program.Edited {
					o, ed := e.signed(s.m), e.Program.Edit()
					all := o.Copies(at)
					for _, k := range all {
						x := float64(float32(f.of(o.Steps[k].Value)))
						if x-x != 0 {
							return nil
						}
						ed.SetNumber(k, x)
					}
					if len(all) == 0 {
						return nil
					}
					return ended(ed)
				},
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
