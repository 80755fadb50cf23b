package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// numberFunctions are what becomes of numbers that are others in each layer, where all are off in one way.
var numberFunctions = []struct {
	kind Kind
	of   func(x float64) float64
}{
	{"number.doubled", func(x float64) float64 { return 2 * x }},
	{"number.halved", func(x float64) float64 { return x / 2 }},
	{"number.times-root-2", func(x float64) float64 { return x * math.Sqrt2 }},
	{"number.over-root-2", func(x float64) float64 { return x / math.Sqrt2 }},
	{"number.negated", func(x float64) float64 { return -x }},
	{"number.squared", func(x float64) float64 { return x * x }},
	{"number.rooted", math.Sqrt},
	{"number.inverted", func(x float64) float64 { return 1 / x }},
	{"number.two-sided-quantile", func(x float64) float64 {
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
		for _, f := range numberFunctions {
			right := t.Steps[i].Value
			m := Mistake{Kind: f.kind, Place: s.site(s.first, i), Of: what, By: literal(float64(float32(f.of(right)))), For: literal(right)}
			if err := s.try(hypothesis{
				class: program.Constant, at: at, say: func(*Entry) Name { return m.name() },
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
