package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// computedIn tries, in float32, an operation whose steps up to one are computed in a narrower type: each rounds its result, a mean once.
func (s *search) computedIn() error {
	if s.first.Call.DType != hooks.F32 {
		return nil
	}
	t := s.first.signed(s.m)
	end := t.Source(t.Out)
	var all []int
	for _, i := range t.Firsts() {
		if t.Steps[i].Prim.Computes() && !isSumOfMean(t.Program, i) && i != end {
			all = append(all, i)
		}
	}
	for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
		for _, i := range append(slices.Clone(all), end) {
			at := t.Of(i)
			m := Mistake{Kind: "precision.each-step", DType: d}
			if i != end {
				m.Kind, m.Of = "precision.up-to", s.step(s.first, i)
			}
			if err := s.try(hypothesis{
				class: program.Inserted, of: computedAs(d.String(), true),
				make: func(e *Entry) *program.Edited { return s.computed(e, at, d) },
				say:  func(*Entry) Name { return m.name() },
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// computedAs is the key of all ways to compute in a type, with a result of the type or with a wider result.
func computedAs(numbers string, result bool) string {
	if !result {
		numbers += ":operands"
	}
	return "computed:" + numbers
}

// isSumOfMean reports whether a step is the sum of a mean, which is rounded when it is divided.
func isSumOfMean(p *program.Program, step int) bool {
	return slices.ContainsFunc(readersOf(p, step), func(k int) bool {
		_, ok := p.Count(k)
		return ok && p.Source(p.Steps[k].Args[0]) == step
	})
}

// computed has the steps up to one place computed in a narrower type.
func (s *subject) computed(e *Entry, at program.Place, d hooks.DType) *program.Edited {
	t, ed := e.signed(s.m), e.Program.Edit()
	in := make([]bool, len(t.Steps))
	for _, i := range t.Copies(at) {
		for _, k := range t.Ancestors(i) {
			in[k] = true
		}
	}
	if len(t.Copies(at)) == 0 {
		return nil
	}
	round := func(x []float64) {
		for i := range x {
			x[i] = floats.Round(d, x[i])
		}
	}
	for i := range t.Steps {
		st := &t.Steps[i]
		switch {
		case st.Prim == program.Input && in[i]:
			v := program.Value{Shape: st.Shape, Data: slices.Clone(e.Call.In[st.Index].Data)}
			round(v.Data)
			ed.OtherInput(i, v)
		case (st.Prim == program.Weight || st.Prim == program.Matrix) && in[i]:
			ed.OtherWeight(i, changed(e.Call.W[st.Index], round))
		case !st.Prim.Computes() && st.Prim != program.Round:
		case in[i] && !isSumOfMean(t.Program, i):
			ed.Step(i).Round = program.Model
		case st.Round == program.Model:
			ed.Step(i).Round = program.Plain
		}
	}
	edited := ended(ed)
	if edited == nil {
		return nil
	}
	p, c := edited.Whole(e.Call)
	c.DType, c.Choices = d, nil
	if s.refused(e, func(some *program.Some) (program.Value, error) {
		few := c
		few.Some = some
		return p.Eval(few)
	}) {
		return nil
	}
	v, err := p.Eval(c)
	if err != nil {
		s.failed(outside(err))
		return nil
	}
	out := program.Value{Data: slices.Clone(v.Data), Bound: make([]float64, len(v.Data))}
	copy(out.Bound, v.Bound)
	return given(e, out)
}

// leastDropped is the smallest part of what is left that is 0 where the rest is scaled.
const leastDropped = 2

// dropped looks for a result some elements of which are 0, while all others are multiplied by one number: dropout that was left on.
func (s *search) dropped() error {
	zeros := 0
	for _, e := range s.entries {
		y, _ := e.Target()
		for _, i := range e.Left {
			if i < len(y) && y[i] == 0 {
				zeros++
			}
		}
	}
	if zeros < leastDropped {
		return nil
	}
	var ratios []float64
	for _, e := range s.entries {
		own, ok := s.valueOf(e, nil)
		y, _ := e.Target()
		if !ok || len(own.Data) != len(y) {
			return s.err
		}
		for _, i := range e.Left {
			if y[i] != 0 && own.Data[i] != 0 {
				ratios = append(ratios, y[i]/own.Data[i])
			}
		}
	}
	if len(ratios) < shownElements {
		return nil
	}
	slices.Sort(ratios)
	middle := ratios[len(ratios)/2]
	part := math.Round(100*(1-1/middle)) / 100
	if !(middle > 1) || part <= 0 {
		return nil
	}
	by := 1 / (1 - part)
	m := Mistake{Kind: "dropout.left-on", X: some(by), By: literal(1 - part)}
	return s.try(hypothesis{
		class: program.Inserted, solved: 1 + zeros, say: func(*Entry) Name { return m.name() },
		make: func(e *Entry) *program.Edited {
			own, ok := s.asStored(e) // it is an operation of its own
			y, _ := e.Target()
			if !ok || len(own.Data) != len(y) {
				return nil
			}
			for i := range own.Data {
				if own.Data[i], own.Bound[i] = own.Data[i]*by, own.Bound[i]*by+twoRoundings(own.Data[i]*by); y[i] == 0 {
					own.Data[i], own.Bound[i] = 0, 0
				}
			}
			return given(e, own)
		},
	})
}

// twoRoundings is what two roundings of float32 may change a result by, which is x at most; below the normal numbers engines take it for zero.
func twoRoundings(x float64) float64 {
	if x = math.Abs(x); x == 0 {
		return 0
	}
	return 2*floats.RoundingError(hooks.F32, x) + min(x, floats.Flushed(hooks.F32))
}
