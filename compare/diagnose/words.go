package diagnose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// editMistake is the mistake of an edit of steps. The kind follows from the steps around the edit.
func editMistake(s *subject, e *Entry, d edit.Edit) Mistake {
	t := e.signed(s.m)
	step := t.Copies(d.At[0])[0]
	m := mistakeAt(s, e, t, step, d)
	m.Place = s.site(e, step)
	return m
}

// mistakeAt is the mistake of an edit at a step, without its place.
func mistakeAt(s *subject, e *Entry, t *edit.StepIndex, step int, d edit.Edit) Mistake {
	at := d.At[0]
	switch d.Class {
	case edit.LeftOut:
		if at.Arg == 2 {
			return Mistake{Kind: "bias.left-out"}
		}
		return leftOutMistake(s, e, step, t.At(d.From))
	case edit.Exchanged:
		if t.Steps[step].Prim == program.Rsqrt && d.Prim == program.Div {
			return Mistake{Kind: "root.left-out", Of: s.value(e, t.Steps[step].Args[0])}
		}
		return Mistake{Kind: "step.exchanged", Of: s.step(e, step), By: primitive(d.Prim), For: primitive(t.Steps[step].Prim)}
	case edit.Swapped:
		return Mistake{Kind: "operands.exchanged", Of: s.step(e, step)}
	case edit.Twice:
		return twiceTaken(s, e, step)
	case edit.Whole:
		return addedPart(s, e, step, d.Second())
	case edit.Index:
		return indexedPart(s, e, t, d)
	case edit.Order:
		return reorderedSteps(s, e, t, step, d)
	case edit.Axis:
		return overAxis(s, e, t, step, d)
	case edit.Operand:
		now, right := s.value(e, t.At(d.From)), s.value(e, t.Steps[step].Args[at.Arg])
		if now.same(right) {
			return Mistake{Kind: "operand.other-part", Of: s.step(e, step), By: now}
		}
		return Mistake{Kind: "operand.other", Of: s.step(e, step), By: now, For: right}
	case edit.Count:
		return counted(t, step, d)
	case edit.Mapped:
		return mappedElements(s, e, t, d)
	}
	return Mistake{}
}

// reorderedSteps is the mistake of an edit that takes a step earlier, later, or of only one term.
func reorderedSteps(s *subject, e *Entry, t *edit.StepIndex, step int, d edit.Edit) Mistake {
	if d.Map.Kind == edit.Shift {
		return shiftedStep(s, e, t, d)
	}
	switch d.Prim {
	case program.Max:
		return Mistake{Kind: "epsilon.least-value", Of: numberBelow(s, t, step)}
	case program.Add:
		return Mistake{Kind: "epsilon.added", Of: numberBelow(s, t, step)}
	case program.Mul, program.Div:
		alone, other := t.Term(d)
		who, _ := operator(s, e, step)
		return Mistake{Kind: "order.term-alone", Of: who, By: s.value(e, alone), For: s.value(e, other)}
	}
	below := numberBelow(s, t, t.Steps[step].Args[0].Step)
	if d.Second() {
		return Mistake{Kind: "epsilon.after-inverse", Of: below}
	}
	return Mistake{Kind: "epsilon.after-root", Of: below}
}

// overAxis is the mistake of a step that is taken over a wrong axis, or that reads an operand along a wrong axis.
func overAxis(s *subject, e *Entry, t *edit.StepIndex, step int, d edit.Edit) Mistake {
	at := d.At[0]
	switch d.Map.Kind {
	case edit.Apart:
		return Mistake{Kind: "axis.parts", N: d.Map.N}
	case edit.Along:
		from, to := strconv.Itoa(d.Map.Axis), strconv.Itoa(d.Map.Other)
		if axes := s.m.List.Entries[e.Node.Entry].Axes; len(axes) == len(t.Steps[step].Shape) {
			from, to = axisWords(axes[d.Map.Axis]), axisWords(axes[d.Map.Other])
		}
		return Mistake{Kind: "axis.read", Of: s.value(e, t.Steps[step].Args[at.Arg]), Axis: to, Other: from}
	case 0:
		m := Mistake{Kind: "axis.two"}
		axes := axesOf(s, e, t.Steps[step].Args[0])
		if len(axes) > 1 {
			m.Axis = axisWords(axes[len(axes)-2])
		}
		switch {
		case d.Second():
			if m.Kind = "axis.wrong"; len(axes) > 1 {
				m.Other = axisWords(axes[len(axes)-1])
			}
		case len(d.At) > 1:
			m.Kind = "axis.two-all"
		}
		return m
	}
	if v := t.At(at); t.Tiles(d) {
		shape := v.Shape
		return Mistake{Kind: "heads.tiled-reads", Of: s.value(e, v), N: shape[d.Map.Axis] * shape[d.Map.Other], M: shape[d.Map.Axis], K: shape[d.Map.Other]}
	}
	return Mistake{Kind: "operand.transposed", Of: s.value(e, t.Steps[step].Args[at.Arg]), By: s.step(e, step)}
}

// counted is the mistake of a mean with a wrong count of terms.
func counted(t *edit.StepIndex, step int, d edit.Edit) Mistake {
	number, _ := edit.Divisor(t.Program, step)
	right := t.Steps[number].Number().Value
	switch {
	case d.Map.N > 0 && d.Map.By == 1:
		return Mistake{Kind: "count.last-left-out", For: literal(right)}
	case d.Map.N > 0:
		return Mistake{Kind: "count.first-left-out", For: literal(right)}
	}
	return Mistake{Kind: "count.divisor", X: some(right + d.Value), Right: some(right)}
}

// numberBelow is the term of the number that a step below a root takes: an epsilon or a floor.
func numberBelow(s *subject, t *edit.StepIndex, step int) Term {
	for _, a := range t.Steps[step].Args {
		if n := a.Step; t.Steps[n].Prim == program.Number {
			return numberTerm(s, t.Program, n)
		}
	}
	return Term{Kind: SomeValue}
}

// site names a step by its operation and its place in the formula.
func (s *subject) site(e *Entry, step int) string {
	st := &e.Program.Steps[step]
	kind, _, _ := strings.Cut(st.Form, "(")
	name := st.Site
	if name == "" {
		name = st.Prim.String()
	}
	if kind == "" {
		return name
	}
	return kind + "." + name
}

// step is the term of a step.
func (s *subject) step(e *Entry, step int) Term {
	if who, ok := operator(s, e, step); ok {
		return who
	}
	return s.stepTerm(e, step)
}

// stepTerm is the term of a step by operation and name, with the place in the source.
func (s *subject) stepTerm(e *Entry, step int) Term {
	t := stepTerm(s.site(e, step))
	t.Code = codeOf(s, e, step)
	return t
}

// value is the term of a variable's value.
func (s *subject) value(e *Entry, v program.Var) Term {
	step := v.Step
	if leaf, ok := e.signed(s.m).Moved(step); ok { // a value from a cache has the name of the tensor that is put into the cache
		step = leaf
	}
	switch st := &e.Program.Steps[step]; st.Prim {
	case program.Round:
		return s.value(e, st.Args[0])
	case program.Mask:
		return Term{Kind: TheMask}
	case program.Input:
		if n := e.Inputs; st.Index() >= 0 && st.Index() < len(n) {
			t := tensorTerm(s.m.List.Entries[n[st.Index()].Entry].Name)
			t.Before = n[st.Index()].Pass != e.Node.Pass
			return t
		}
	case program.Weight, program.Matrix:
		return weightTerm(e.Weights[st.Index()].Name)
	case program.Number:
		if st.Site == "" {
			return literal(st.Number().Value)
		}
	}
	return s.stepTerm(e, step)
}

// operator is the term of a step by its second operand: the factor, the weight, the divisor.
func operator(s *subject, e *Entry, step int) (Term, bool) {
	p, st := e.Program, &e.Program.Steps[step]
	other := func(k int) *program.Step { return &p.Steps[st.Args[k].Step] }
	number := func() (float64, bool) {
		for k := range st.Args {
			if o := other(k); o.Prim == program.Number {
				return o.Number().Value, true
			}
		}
		return 0, false
	}
	switch st.Prim {
	case program.Mul:
		if x, ok := number(); ok {
			return Term{Kind: TheFactor, X: x}, true
		}
		for k := range st.Args {
			if o := other(k); o.Prim == program.Weight {
				return Term{Kind: TheWeight, Name: order.NameOf(e.Weights[o.Index()].Name).Module()}, true
			}
		}
		for k := range st.Args {
			if w, ok := weightBelow(s, e, st.Args[k].Step); ok {
				return Term{Kind: TheWeight, Name: w}, true
			}
		}
	case program.Div:
		if o := other(1); o.Prim == program.Number {
			return Term{Kind: TheDivisor, X: o.Number().Value}, true
		}
	case program.Add:
		if x, ok := number(); ok {
			if number := other(1); number.Prim == program.Number && number.Site != "" {
				return Term{Kind: TheNamed, Name: number.Site, Code: codeOf(s, e, step)}, true
			}
			return Term{Kind: TheAddend, X: x}, true
		}
	case program.Tanh, program.Exp, program.Erf, program.Cos, program.Sin, program.Log, program.Log1p, program.Expm1, program.Pow:
		return Term{Kind: Function, Name: st.Prim.String()}, true
	case program.Sqrt, program.Rsqrt:
		return Term{Kind: TheRoot}, true
	}
	return Term{}, false
}

// weightBelow names the weight from which a step is computed. ok is false if the step is also computed from an input.
func weightBelow(s *subject, e *Entry, step int) (name string, ok bool) {
	for _, i := range edit.Ancestors(e.Program, step) {
		switch st := &e.Program.Steps[i]; st.Prim {
		case program.Input:
			return "", false
		case program.Weight:
			name, ok = order.NameOf(e.Weights[st.Index()].Name).Module(), true
		}
	}
	return name, ok
}

// leftOutMistake is the mistake of steps that are skipped: the value before the steps is handed on.
func leftOutMistake(s *subject, e *Entry, step int, from program.Var) Mistake {
	p := e.Program
	source := from.Step
	dropped := between(p, source, step)
	if edit.IsShare(p, step, source) {
		return Mistake{Kind: "share.left-out", Of: s.value(e, from)}
	}
	switch st := &p.Steps[step]; {
	case st.Prim == program.Max && len(dropped) == 1:
		for _, a := range st.Args {
			if n := a.Step; p.Steps[n].Prim == program.Number {
				return Mistake{Kind: "floor.left-out", Of: numberTerm(s, p, n), For: literal(p.Steps[n].Number().Value)}
			}
		}
	case st.Prim == program.Neg && len(dropped) == 1:
		return Mistake{Kind: "minus.left-out", Of: s.value(e, from)}
	}
	if len(dropped) == 1 {
		if m, ok := oneLeftOut(s, e, step, source); ok {
			return m
		}
	}
	if p.Steps[source].Prim == program.Input && step == p.Out.Step {
		result := s.value(e, from)
		if item := e.itemOf(p.Steps[source].Index()); item != nil {
			result.Item = some(float64(*item))
		} else if item, ok := e.signed(s.m).Item(from); ok && stacked(s, e.Inputs[p.Steps[source].Index()].Entry) {
			result.Item = some(float64(item))
		}
		return Mistake{Kind: "operation.left-out", By: result}
	}
	if st := &p.Steps[step]; len(dropped) == 1 && len(st.Args) == 2 && st.Args[0].Step == source {
		switch other := s.value(e, st.Args[1]); st.Prim {
		case program.Mul:
			return Mistake{Kind: "product.left-out", Of: other}
		case program.Div:
			return Mistake{Kind: "division.left-out", Of: other}
		}
	}
	if len(dropped) > 1 && !slices.ContainsFunc(dropped, func(i int) bool { return p.Steps[i].Form != p.Steps[dropped[0]].Form }) {
		switch all, ok := operators(s, e, dropped, source); {
		case ok && len(all) == 1:
			return Mistake{Kind: "step.left-out", Of: all[0]}
		case ok && len(all) == 2:
			return Mistake{Kind: "steps.left-out", Of: all[0], By: all[1]}
		}
	}
	return Mistake{Kind: "steps.run-left-out", Of: s.value(e, from)}
}

// oneLeftOut is the mistake of a single step that hands on its operand. ok is false if the step has neither an operator nor an addend.
func oneLeftOut(s *subject, e *Entry, step, source int) (m Mistake, ok bool) {
	p := e.Program
	st := &p.Steps[step]
	if who, ok := operator(s, e, step); ok {
		switch {
		case st.Prim != program.Mul || who.Kind != TheWeight:
			return Mistake{Kind: "step.left-out", Of: who}, true
		case slices.ContainsFunc(st.Args, func(a program.Var) bool { return p.Steps[a.Step].Prim == program.Weight }):
			return Mistake{Kind: "weight.left-out", Of: who}, true
		}
		return Mistake{Kind: "weight.left-out-plus-one", Of: who}, true
	}
	if st.Prim == program.Add || st.Prim == program.Sub {
		for _, a := range st.Args {
			if a.Step != source {
				return Mistake{Kind: "addend.left-out", Of: s.value(e, a)}, true
			}
		}
	}
	return Mistake{}, false
}

// operators lists the terms of steps that are left out between a source and a result, each term once. ok is false if a step has no term.
func operators(s *subject, e *Entry, steps []int, source int) (all []Term, ok bool) {
	for _, i := range steps {
		who, ok := operator(s, e, i)
		if !ok {
			who, ok = addendOf(s, e, i, source)
		}
		if !ok {
			return nil, false
		}
		if !slices.ContainsFunc(all, who.same) {
			all = append(all, who)
		}
	}
	return all, true
}

// addendOf is the tensor that a step adds to a value from a source.
func addendOf(s *subject, e *Entry, step, source int) (Term, bool) {
	p, st := e.Program, &e.Program.Steps[step]
	if st.Prim != program.Add && st.Prim != program.Sub || len(st.Args) != 2 {
		return Term{}, false
	}
	for k, a := range st.Args {
		from := slices.Contains(edit.Ancestors(p, a.Step), source)
		if o := st.Args[1-k]; from && !slices.Contains(edit.Ancestors(p, o.Step), source) {
			sum := s.value(e, o)
			sum.Sum = true
			return sum, true
		}
	}
	return Term{}, false
}

// between lists the steps after from, up to and with to, that change values. Rounding points and moves of elements change none.
func between(p *program.Program, from, to int) []int {
	if from < 0 || from >= to {
		return nil
	}
	behind := make([]bool, to+1) // computed from step from
	behind[from] = true
	for i := from + 1; i <= to; i++ {
		behind[i] = slices.ContainsFunc(p.Steps[i].Args, func(v program.Var) bool { return behind[v.Step] })
	}
	var all []int
	for _, i := range edit.Ancestors(p, to) {
		switch prim := p.Steps[i].Prim; {
		case i == from || !behind[i]:
		case prim.Computes(), prim == program.Neg, prim == program.Max, prim == program.Floor, prim == program.Gate:
			all = append(all, i)
		}
	}
	return all
}

// addedPart is the mistake of a sum that is taken of a wrong part of a tensor.
func addedPart(s *subject, e *Entry, step int, only bool) Mistake {
	p := e.Program
	for _, a := range p.Steps[step].Args {
		if st := &p.Steps[a.Step]; st.Prim.Computes() && len(st.Args) == 2 {
			what := s.value(e, st.Args[1])
			if only {
				return Mistake{Kind: "part.other", Of: what}
			}
			return Mistake{Kind: "part.all", Of: what}
		}
	}
	return Mistake{Kind: "part.all-unnamed"}
}
