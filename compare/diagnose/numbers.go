package diagnose

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// usualCaps are the soft caps of published models.
var usualCaps = []float64{50, 30, 20, 15}

// powers is the largest power of ten by which a constant may be off.
const powers = 6

// othersFor lists the numbers that a port may have in place of old: numbers of the program and of the configuration, and functions of old.
func othersFor(s *search, t *edit.StepIndex, old float64, what TermKind) []number {
	var all []number
	add := func(n number) {
		same := func(o number) bool { return same(o.value, n.value) }
		if !same(number{value: old}) && !math.IsInf(n.value, 0) && n.value == n.value && !slices.ContainsFunc(all, same) {
			all = append(all, n)
		}
	}
	for _, n := range s.numbers {
		add(n)
		for k := range all { // one number, several names
			if o := &all[k]; same(o.value, n.value) && o.words != n.words && o.words != "" && n.words != "" && len(fieldNames(o.words)) <= 2 && !strings.Contains(o.words, n.words) {
				o.words, o.plain = listed([]string{o.words, n.words}), o.plain || n.plain
			}
		}
	}
	for _, i := range t.Numbers() {
		add(number{value: t.Steps[i].Number().Value})
	}
	if what == SoftCap {
		for _, v := range usualCaps {
			add(number{value: v})
		}
	}
	for k := 1; k <= 2*powers; k++ {
		add(number{value: math.Pow10(-k)})
	}
	for k := 1; k <= powers; k++ {
		add(number{value: old * math.Pow10(k)})
		add(number{value: old * math.Pow10(-k)})
	}
	if what == Epsilon {
		for _, d := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
			add(number{value: 2 * floats.Unit(d), unit: d})
		}
	}
	for _, v := range []float64{-old, old * old, 1 / old, math.Sqrt(math.Abs(old)), 1 / (old * old), 1, -1, 2 * old, old / 2, old + 1, old - 1} {
		add(number{value: v})
	}
	for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
		if r := floats.Round(d, old); r != old {
			add(number{value: r, rounded: d})
		}
	}
	return append(all, number{})
}

// said reports whether a number has a name, or a dtype from which it comes.
func (n number) said() bool { return n.words != "" || n.rounded != 0 || n.unit != 0 }

// nearNumber reports whether v may be the rounded right number, old: the operation has fewer bits than float32, and the numbers differ by
// less than 1/512 of the right number.
func nearNumber(s *search, old, v float64) bool {
	if old == 0 {
		return false
	}
	off := math.Abs(v/old - 1)
	if s.first.Call.DType == hooks.F32 {
		return false
	}
	return off < 0x1p-9
}

// otherNumbers yields wrong numbers of a formula, the most plausible first. Equal numbers are wrong together, then one by one.
func otherNumbers(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		numbers := t.Numbers()
		var others [][]number
		for _, i := range numbers {
			others = append(others, othersFor(s, t, t.Steps[i].Number().Value, numberTerm(s.subject, t.Program, i).Kind))
		}
		for more, rank := true, 0; more; rank++ {
			more = false
			for k, i := range numbers {
				if rank >= len(others[k]) {
					continue
				}
				more = true
				for _, at := range equalNumbers(t, numbers, i) {
					if !numberAt(s, t, i, at, others[k][rank], yield) {
						return
					}
				}
			}
		}
	}
}

// equalNumbers lists sets of places that may have a wrong number together. For the first of several equal numbers, the first set is the places of all
// equal numbers. The last set is the place of the number only.
func equalNumbers(t *edit.StepIndex, numbers []int, i int) [][]edit.Place {
	var equal []edit.Place
	first := true
	for _, k := range numbers {
		if t.Steps[k].Number().Value == t.Steps[i].Number().Value {
			first = first && k >= i
			equal = append(equal, t.PlaceOf(k))
		}
	}
	own := []edit.Place{t.PlaceOf(i)}
	if !first || len(equal) == 1 {
		return [][]edit.Place{own}
	}
	return [][]edit.Place{equal, own}
}

// numberAt yields a number in place of the number of a step. If the step's number is stored in the model's dtype, the yielded number is rounded
// first; if the rounded number gives nothing, numberAt yields the number without rounding.
func numberAt(s *search, t *edit.StepIndex, i int, at []edit.Place, n number, yield func(Mistake) bool) bool {
	st, dtype := &t.Steps[i], s.first.Call.DType
	if nearNumber(s, st.Number().Value, n.value) || s.cautious && (st.Round == program.Model || !powerTried(n.value/st.Number().Value)) {
		return true
	}
	m, before := otherConstant(s.subject, s.first, i, n, at...), len(s.found)
	if !yield(m) {
		return false
	}
	if s.cautious || len(s.found) > before || dtype == hooks.F32 || st.Round != program.Model || !n.said() || floats.Round(dtype, n.value) == n.value {
		return true
	}
	m.Rounding = Unstored
	return yield(m)
}

// otherNumber makes a program with another number at places. An unstored number is not rounded to the model's dtype.
func otherNumber(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	switch {
	case !ok:
		return nil
	case m.Rounding == "" && m.Kind != "number.not-rounded":
		return d.Apply(e.signed(s.m))
	}
	t, ed := e.signed(s.m), edit.NewEditor(e.Program)
	for _, p := range d.At {
		for _, k := range t.Copies(p) {
			ed.SetNumber(k, d.Value)
			ed.Step(k).Round = program.Plain
		}
	}
	return ended(ed)
}

// unroundedNumbers yields constants that the model stores in its dtype and the port does not round.
func unroundedNumbers(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, i := range t.Numbers() {
			st := &t.Steps[i]
			if s.cautious || st.Round != program.Model || floats.Round(s.first.Call.DType, st.Number().Value) == st.Number().Value {
				continue
			}
			if !yield(Mistake{
				Kind: "number.not-rounded", Of: numberTerm(s.subject, t.Program, i), For: literal(st.Number().Value), DType: s.first.Call.DType, Place: s.site(s.first, i),
				Edit: edit.Edit{Class: edit.Constant, At: []edit.Place{t.PlaceOf(i)}, Value: st.Number().Value}.Text(),
			}) {
				return
			}
		}
	}
}

// literals yields changes of the numbers of a formula that no configuration gives, such as the 1 of 1+w: doubled, with the opposite sign, and halved.
func literals(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		numbers := t.Numbers()
		for _, i := range t.Firsts() {
			st := &t.Steps[i]
			readers := program.ReadersOf(t.Program, i)
			if st.Prim != program.Number || slices.Contains(numbers, i) || len(readers) != 1 || t.Steps[readers[0]].Prim != program.Add && t.Steps[readers[0]].Prim != program.Mul {
				continue
			}
			for _, by := range []float64{2, -1, 0.5} {
				m := Mistake{Kind: "number.value", Place: s.site(s.first, readers[0]), Of: s.step(s.first, readers[0]), X: some(by * st.Number().Value), Right: some(st.Number().Value)}
				m.Edit = edit.Edit{Class: edit.Constant, At: []edit.Place{t.PlaceOf(i)}, Value: by * st.Number().Value}.Text()
				if !yield(m) {
					return
				}
			}
		}
	}
}

// powerOfTen reports whether a number is 0 or a power of ten.
func powerOfTen(x float64) bool {
	return x == 0 || x > 0 && math.Abs(x/math.Pow10(int(math.Round(math.Log10(x))))-1) < 1e-9
}

// powerTried reports whether a ratio of two numbers is 0 or a power of ten that is tried.
func powerTried(ratio float64) bool {
	return powerOfTen(ratio) && (ratio == 0 || math.Abs(math.Log10(ratio)) < powers+0.5)
}
