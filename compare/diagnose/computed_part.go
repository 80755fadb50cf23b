package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// computedPartIn tries, in float32, one step alone that is computed in a narrower type, the steps from one on, and one operation of several:
// what they read is rounded, and so is the result of each.
func (s *search) computedPartIn() error {
	if s.first.Call.DType != hooks.F32 {
		return nil
	}
	t := s.first.signed(s.m)
	try := func(kind Kind, d hooks.DType, step int, part func(t *program.Parts, i int) []bool) error {
		return s.try(hypothesis{
			class: program.Inserted, of: computedAs(d.String(), true), weak: true,
			make: func(e *Entry) *program.Edited { return s.computedPart(e, t.Of(step), d, part) },
			say:  func(*Entry) Name { return Mistake{Kind: kind, Of: s.step(s.first, step), DType: d}.name() },
		})
	}
	for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
		for _, i := range t.Firsts() {
			st := &t.Steps[i]
			if !st.Prim.Computes() || isSumOfMean(t.Program, i) || i == t.Source(t.Out) && len(t.Ancestors(i)) == 1 {
				continue
			}
			if err := try("precision.one-step", d, i, aloneOf); err != nil {
				return err
			}
			if err := try("precision.from-step-on", d, i, onFrom); err != nil {
				return err
			}
			if !t.Last(i) {
				continue
			}
			if err := try("precision.operation-to", d, i, operationTo); err != nil {
				return err
			}
		}
	}
	return nil
}

// aloneOf is one step alone, with the sum of a mean.
func aloneOf(t *program.Parts, i int) []bool {
	in := make([]bool, len(t.Steps))
	in[i] = true
	if _, ok := t.Count(i); ok {
		in[t.Source(t.Steps[i].Args[0])] = true
	}
	return in
}

// onFrom is a step, and what is computed from it.
func onFrom(t *program.Parts, i int) []bool {
	in := aloneOf(t, i)
	for k := i + 1; k < len(t.Steps); k++ {
		in[k] = in[k] || slices.ContainsFunc(t.Steps[k].Args, func(v program.Var) bool { return in[t.Source(v)] })
	}
	return in
}

// operationTo is the operation that a step ends: back to the last steps of other operations.
func operationTo(t *program.Parts, i int) []bool {
	in := make([]bool, len(t.Steps))
	in[i] = true
	for k := i; k >= 0; k-- {
		if !in[k] {
			continue
		}
		for _, a := range t.Steps[k].Args {
			if from := t.Source(a); t.Steps[from].Prim.Computes() && !t.Last(from) {
				in[from] = true
			}
		}
	}
	return in
}

// computedPart has a part of the program computed in a narrower type: in turn for each copy of a step, in the order of the program.
func (s *subject) computedPart(e *Entry, at program.Place, d hooks.DType, part func(t *program.Parts, i int) []bool) *program.Edited {
	t := e.signed(s.m)
	in := make([]bool, len(t.Steps))
	for _, i := range t.Copies(at) {
		for k, some := range part(t, i) {
			in[k] = in[k] || some
		}
	}
	round := func(x []float64) {
		for i := range x {
			x[i] = floats.Round(d, x[i])
		}
	}
	narrow, ed := e.Program.Edit(), e.Program.Edit()
	var ends []int // what the rest reads of the part
	for i := range t.Steps {
		st := &t.Steps[i]
		if !in[i] {
			if st.Round == program.Model {
				narrow.Step(i).Round = program.Plain
			}
			for _, a := range st.Args {
				if k := t.Source(a); in[k] && !slices.Contains(ends, k) {
					ends = append(ends, k)
				}
			}
			continue
		}
		if st.Prim.Computes() && !isSumOfMean(t.Program, i) {
			narrow.Step(i).Round = program.Model
		}
		for a, v := range st.Args {
			from := t.Source(v)
			switch prim := t.Steps[from].Prim; {
			case in[from] || prim == program.Number:
			case prim == program.Matrix:
				narrow.OtherWeight(from, changed(e.Call.W[t.Steps[from].Index], round))
			default:
				x, ok := s.valueAt(e, v)
				if !ok || len(x) != product(v.Shape()) {
					return nil
				}
				x = slices.Clone(x)
				round(x)
				narrow.Read(i, a, narrow.Other(program.Value{Shape: v.Shape(), Data: x}))
			}
		}
	}
	if k := t.Source(t.Out); in[k] && !slices.Contains(ends, k) {
		ends = append(ends, k)
	}
	var whole []program.Var
	for _, k := range ends {
		if len(t.Steps[k].Shape) == 0 {
			return nil
		}
		whole = append(whole, narrow.Reshape(narrow.Cat(0, t.Result(k)), product(t.Steps[k].Shape)))
	}
	if len(whole) == 0 || narrow.Err() != nil {
		return nil
	}
	one, err := narrow.Only(narrow.Cat(0, whole...))
	if err != nil {
		return nil
	}
	p, c := one.Whole(e.Call)
	c.DType, c.Choices = d, nil
	v, err := p.Eval(c)
	if err != nil {
		s.failed(outside(err))
		return nil
	}
	bound := make([]float64, len(v.Data))
	copy(bound, v.Bound)
	from := 0
	for _, k := range ends {
		n := product(t.Steps[k].Shape)
		ed.Pass(k, ed.Other(program.Value{Shape: t.Steps[k].Shape, Data: slices.Clone(v.Data[from:][:n]), Bound: bound[from:][:n]}))
		from += n
	}
	return ended(ed)
}
