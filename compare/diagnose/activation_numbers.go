package diagnose

import (
	"iter"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// numberedActivations yields other activations in place of the program's own, each with one number of its formula solved from the elements, such as
// x·sigmoid(1.773·x). The numbers of the own activation are solved with all numbers of the program.
func numberedActivations(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, own := range activationsOf {
			all := pieces(s.first.Program, own.Kind())
			if len(all) == 0 {
				continue
			}
			at := s.first.signed(s.m).PlaceOf(all[0].last)
			for n, base := range activations {
				if base.Kind() == own.Kind() {
					continue
				}
				for _, k := range edit.NumbersOf(base) {
					place := edit.Edit{Class: edit.Exchanged, At: []edit.Place{at}, Map: edit.Map{N: n, By: k.Step}}.Text()
					if !solveFamily(s, family{
						starts: []float64{k.Value, 2 * k.Value, k.Value / 2}, old: k.Value,
						of: func(v number) Mistake {
							return Mistake{Kind: "activation.other-with-number", Place: base.Kind(), Of: literal(k.Value), For: function(own.Kind()), X: some(v.value), Edit: place}
						},
					}, yield) {
						return
					}
				}
			}
		}
	}
}

// numberedActivation puts an activation with a number of the mistake in place of the program's own. The mistake's edit has the index of the activation,
// and the step of the number.
func numberedActivation(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	if !ok || d.Map.N < 0 || d.Map.N >= len(activations) {
		return nil
	}
	all := pieces(e.Program, m.For.Name)
	if len(all) == 0 {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	for _, one := range all {
		ed.Pass(one.last, edit.InsertWithNumber(ed, activations[d.Map.N], d.Map.By, m.X.Value, one.in))
	}
	return ended(ed)
}
