package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// twiceTaken is the mistake of a step that is taken twice. If the step has a number, the mistake has what both steps come to.
func twiceTaken(s *subject, e *Entry, step int) Mistake {
	m := Mistake{Kind: "step.twice", Of: s.step(e, step)}
	st := &e.Program.Steps[step]
	for _, a := range st.Args {
		o := &e.Program.Steps[a.Step]
		if o.Prim != program.Number {
			continue
		}
		x := o.Number().Value * o.Number().Value
		switch st.Prim {
		case program.Mul:
			if strings.HasPrefix(o.Site, "√(") { // a constant of the formula
				m.Kind = "step.twice-root"
			}
		case program.Div:
			m.Kind = "division.twice"
		case program.Add:
			m.Kind, m.By = "addend.twice", literal(2*o.Number().Value)
			return m
		default:
			return m
		}
		m.By, m.Called = literal(x), s.numbers.called(x, o.Number().Value, "")
		if right := s.numbers.fieldsOrFunctions(o.Number().Value, ""); m.Called != "" && len(right) > 0 {
			m.Called = insteadOf(m.Called, right[0].Name)
		}
		return m
	}
	return m
}

// otherConstant is the mistake of a wrong number in place of the number of a step, at the given places.
func otherConstant(s *subject, e *Entry, step int, v number, at ...edit.Place) Mistake {
	right, value := e.Program.Steps[step].Number().Value, v.value
	what := numberTerm(s, e.Program, step)
	m := Mistake{Kind: "number.value", Place: s.site(e, step), Of: what, X: some(value), Right: some(right)}
	m.Edit = edit.Edit{Class: edit.Constant, At: at, Value: value}.Text()
	called := s.numbers.called(value, right, what.Kind)
	switch {
	case value == 0 && what.Kind != Epsilon:
		m.Kind = "number.zero"
	case called != "":
		m.Called = called
	case v.own:
		m.Called = v.words
	case v.rounded != 0:
		m.Kind, m.DType = "number.rounded", v.rounded
	case v.unit != 0:
		m.Kind, m.DType = "number.machine-epsilon", v.unit
	}
	return m
}

// same reports whether two numbers are equal in float32.
func same(a, b float64) bool { return float32(a) == float32(b) }

// numberTerm is the term of a number, by its use in the formula.
func numberTerm(s *subject, p *program.Program, step int) Term {
	readers := program.ReadersOf(p, step)
	has := func(test func(i int) bool) bool { return slices.ContainsFunc(readers, test) }
	after := func(i int, prims ...program.Prim) bool {
		for _, k := range program.ReadersOf(p, i) {
			if slices.Contains(prims, p.Steps[k].Prim) {
				return true
			}
		}
		return false
	}
	switch {
	case has(func(i int) bool { return p.Steps[i].Prim == program.Add && after(i, program.Rsqrt, program.Sqrt) }):
		return Term{Kind: Epsilon}
	case has(func(i int) bool { return p.Steps[i].Prim == program.Max && after(i, program.Sqrt, program.Rsqrt) }):
		return Term{Kind: Floor}
	case has(func(i int) bool { return p.Steps[i].Prim == program.Div && after(i, program.Tanh) }) && len(readers) > 1 || caps(p, step):
		return Term{Kind: SoftCap}
	case has(func(i int) bool { return p.Steps[i].Prim == program.Mul }):
		return Term{Kind: AFactor}
	case has(func(i int) bool { return p.Steps[i].Prim == program.Div }):
		return Term{Kind: ADivisor}
	}
	if n := p.Steps[step].Site; n != "" {
		return Term{Kind: AName, Name: n}
	}
	return Term{Kind: SomeValue}
}

// caps reports whether a number is a soft cap: one of two equal numbers around a tanh. The operand of the tanh is divided by the number, and the
// result is multiplied by the number.
func caps(p *program.Program, step int) bool {
	for i := range p.Steps {
		if p.Steps[i].Prim != program.Tanh {
			continue
		}
		div := p.Steps[i].Args[0].Step
		if p.Steps[div].Prim != program.Div {
			continue
		}
		below := p.Steps[div].Args[1].Step
		for _, mul := range program.ReadersOf(p, i) {
			if p.Steps[mul].Prim != program.Mul || p.Steps[below].Prim != program.Number {
				continue
			}
			for _, a := range p.Steps[mul].Args {
				above := a.Step
				if p.Steps[above].Prim == program.Number && p.Steps[above].Number().Value == p.Steps[below].Number().Value && (step == below || step == above) {
					return true
				}
			}
		}
	}
	return false
}

// primitive is the term of a function of a program.
func primitive(p program.Prim) Term { return Term{Kind: Primitive, Name: p.String()} }

// literal is the term of a number.
func literal(x float64) Term { return Term{Kind: Literal, X: x} }
