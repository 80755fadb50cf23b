package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// numberFunction is a function that a port may apply to a number, where each layer has its own number.
type numberFunction struct {
	kind Kind
	of   func(x float64) float64
}

var numberFunctions = []numberFunction{
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

// functionsOfNumbers yields functions of a number that differs between the entries, for example between layers.
func functionsOfNumbers(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, i := range t.Numbers() {
			at, differ := t.PlaceOf(i), false
			for _, e := range s.entries {
				o := e.signed(s.m)
				for _, k := range o.Copies(at) {
					differ = differ || o.Steps[k].Number().Value != t.Steps[i].Number().Value
				}
			}
			if !differ {
				continue
			}
			right := t.Steps[i].Number().Value
			m := Mistake{Place: s.site(s.first, i), Of: numberTerm(s.subject, t.Program, i), For: literal(right), Edit: placed(at)}
			for _, f := range numberFunctions {
				if m.Kind, m.By = f.kind, literal(float64(float32(f.of(right)))); !yield(m) {
					return
				}
			}
		}
	}
}

// functionOfNumber puts a function of the entry's own number in place of the number.
func functionOfNumber(s *subject, e *Entry, m Mistake) *program.Edited {
	of := numberFunctions[slices.IndexFunc(numberFunctions, func(f numberFunction) bool { return f.kind == m.Kind })].of
	t, ed := e.signed(s.m), edit.NewEditor(e.Program)
	all := t.Copies(s.place(m))
	for _, k := range all {
		x := float64(float32(of(t.Steps[k].Number().Value)))
		if x-x != 0 {
			return nil
		}
		ed.SetNumber(k, x)
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}
