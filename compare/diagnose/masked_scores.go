package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// maskedScores yields, for a mask that a sum adds, other numbers in place of masked scores: usual numbers, the least scores that soft caps leave, and
// the number that all masked elements of the result have.
func maskedScores(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for i := range s.first.Program.Steps {
			mask, ok := maskOf(s.subject, s.first, i)
			if !ok {
				continue
			}
			caps := leastScores(s.subject)
			values := append([]float64{0}, caps...)
			if c, ok := commonScore(s, i, mask); ok && !slices.Contains(values, c) {
				values = append(values, c)
			}
			for _, c := range append(values, -1, -10, -100, -1e4, -1e9) {
				m := Mistake{Kind: "mask.value", Place: maskSite, X: some(c)}
				switch {
				case c == 0:
					m.Kind = "mask.multiplied"
				case slices.Contains(caps, c):
					m.Kind = "mask.before-soft-cap"
				}
				if !yield(m) {
					return
				}
			}
			return
		}
	}
}

// leastScores are the least scores that the soft caps of the configuration leave.
func leastScores(s *subject) (all []float64) {
	for _, f := range s.numbers {
		if f.plain && strings.Contains(f.field, fieldWords[SoftCap]) {
			all = append(all, -f.value)
		}
	}
	return all
}

// commonScore is the number that all masked elements of the trace share. ok is false if these elements differ, or if the sum with the mask is not the
// result of the program.
func commonScore(s *search, step int, mask []float64) (c float64, ok bool) {
	p := s.first.Program
	y, _ := s.first.Target()
	if step != p.Out.Step || len(mask) != len(y) {
		return 0, false
	}
	for i, m := range mask {
		switch {
		case m == 0:
		case !ok:
			c, ok = y[i], true
		case y[i] != c:
			return 0, false
		}
	}
	return c, ok
}

// maskOf returns the operand of a sum that is a mask: its elements are 0 or at most −1e30. ok is false if the step is not a sum with a mask.
func maskOf(s *subject, e *Entry, step int) ([]float64, bool) {
	st := &e.Program.Steps[step]
	if st.Prim != program.Add || len(st.Args) != 2 {
		return nil, false
	}
	for _, a := range st.Args {
		v, ok := s.valueAt(e, a)
		some := false
		if !ok || slices.ContainsFunc(v, func(x float64) bool { some = some || x != 0; return x != 0 && x > -1e30 }) || !some {
			continue
		}
		return v, true
	}
	return nil, false
}

// filled makes a program with the number X of the mistake in place of masked scores.
func filled(s *subject, e *Entry, by Mistake) *program.Edited {
	ed, some := edit.NewEditor(e.Program), false
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		mask, ok := maskOf(s, e, i)
		if !ok {
			continue
		}
		some = true
		for k := range st.Args {
			if v, _ := s.valueAt(e, st.Args[k]); !slices.Equal(v, mask) {
				continue
			}
			keep, fill := program.Value{Shape: st.Shape, Data: make([]float64, len(mask))}, program.Value{Shape: st.Shape, Data: make([]float64, len(mask))}
			for j, m := range mask {
				if m == 0 {
					keep.Data[j] = 1
				} else {
					fill.Data[j] = by.X.Value
				}
			}
			ed.Pass(i, ed.Add("", ed.Mul("", st.Args[1-k], ed.Other(keep)), ed.Other(fill)))
		}
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// maskedLate yields a softmax of unmasked scores with a mask on the probabilities. The unmasked scores are the operand to which the mask is added, or
// a captured tensor.
func maskedLate(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		p := s.first.Program
		all := edit.Softmaxes(p)
		if len(all) == 0 {
			return
		}
		m := Mistake{Kind: "mask.after-softmax", Place: s.site(s.first, all[0])}
		inputs := leafSteps(s.first.signed(s.m), program.Input)
		if !yield(m) || len(inputs) == 0 {
			return
		}
		own := s.m.List.Entries[s.first.Inputs[p.Steps[inputs[0]].Index()].Entry].Name
		for _, m.Source = range capturedLike(s, own) {
			if !yield(m) {
				return
			}
		}
	}
}

// maskedLast makes softmaxes of a captured tensor, or of the operand to which a mask is added, with 0 wherever the right probabilities are 0.
func maskedLast(s *subject, e *Entry, m Mistake) *program.Edited {
	p, ed := e.Program, edit.NewEditor(e.Program)
	all := edit.Softmaxes(p)
	for _, i := range all {
		x, _ := edit.SoftmaxOf(p, i)
		own, ok := s.valueAt(e, p.Result(i))
		if !ok {
			return nil
		}
		keep := program.Value{Shape: p.Steps[i].Shape, Data: make([]float64, len(own))}
		for k, v := range own {
			if v > 0 {
				keep.Data[k] = 1
			}
		}
		var from program.Var
		if m.Source == "" {
			sum := x.Step
			mask, ok := maskOf(s, e, sum)
			if !ok {
				return nil
			}
			st := &p.Steps[sum]
			from = st.Args[0]
			if v, _ := s.valueAt(e, from); slices.Equal(v, mask) {
				from = st.Args[1]
			}
		} else {
			v, ok := s.tensor(e, source{name: s.here(m.Source, e)})
			if !ok || !slices.Equal(v.Shape, x.Shape) {
				return nil
			}
			from = ed.Other(v)
		}
		exp := ed.Exp("", ed.Sub("", from, ed.RowMax(from)))
		ed.Pass(i, ed.Mul("", ed.Div("", exp, ed.Sum("", exp)), ed.Other(keep)))
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}
