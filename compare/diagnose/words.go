package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// words are the name of an edit, from what stands around the step.
func (s *search) words(e *Entry, d program.Edit) Name {
	t := e.signed(s.m)
	at := d.At[0]
	step := t.Copies(at)[0]
	n := Name{Site: s.site(e, step)}
	switch d.Class {
	case program.LeftOut:
		if at.Arg == 2 {
			n.What = "the bias is not added"
			break
		}
		n.What = s.leftOut(e, step, t.At(d.From))
	case program.Exchanged:
		if t.Steps[step].Prim == program.Rsqrt && d.Prim == program.Div {
			n.What = fmt.Sprintf("no root is taken of %s: it is 1/x, not 1/√x", s.value(e, t.Steps[step].Args[0]))
			break
		}
		n.What = fmt.Sprintf("%s is %s, not %s", s.step(e, step), primWords(d.Prim), primWords(t.Steps[step].Prim))
	case program.Swapped:
		n.What = fmt.Sprintf("%s has its operands exchanged", s.step(e, step))
	case program.Twice:
		n.What = s.step(e, step) + " is applied twice" + s.inAll(e, step)
	case program.Whole:
		n.What = s.added(e, step, d.Value == 1)
	case program.Index:
		n.What = s.indexed(e, t, d)
	case program.Order:
		if d.Map.Kind == program.Shift {
			n.What = s.shifted(e, t, d)
			break
		}
		switch d.Prim {
		case program.Max:
			n.What = s.numberBelow(t, step) + " is the least value below the root, and is not added"
		case program.Add:
			n.What = s.numberBelow(t, step) + " is added below the root, and is not the least value"
		case program.Mul, program.Div:
			alone, other := t.Term(d)
			who, _ := s.operator(e, step)
			n.What = fmt.Sprintf("%s is taken of %s alone, not of its sum with %s", who, s.value(e, alone), s.value(e, other))
		default:
			n.What = s.numberBelow(t, t.Source(t.Steps[step].Args[0])) + " is added to the root, not below it"
			if d.Value == 1 {
				n.What = s.numberBelow(t, t.Source(t.Steps[step].Args[0])) + " is added behind the inverse of the root, not below the root"
			}
		}
	case program.Axis:
		if d.Map.Kind == program.Apart {
			n.What = fmt.Sprintf("step %s is taken over each of %d parts by itself, not over all", s.site(e, step), d.Map.N)
			break
		}
		if d.Map.Kind == program.Along {
			from, to := fmt.Sprintf("axis %d", d.Map.Axis), fmt.Sprintf("axis %d", d.Map.Other)
			if axes := s.m.List.Entries[e.Node.Entry].Axes; len(axes) == len(t.Steps[step].Shape) {
				from, to = axisWords(axes[d.Map.Axis]), axisWords(axes[d.Map.Other])
			}
			n.What = fmt.Sprintf("%s is read along the %s, not along the %s: the wrong axis", s.value(e, t.Steps[step].Args[at.Arg]), to, from)
			break
		}
		if d.Map.Kind == 0 && d.Value == 1 {
			n.What = "step " + s.site(e, step) + " is taken over the wrong axis"
			if axes := s.axesOf(e, t.Steps[step].Args[0]); len(axes) > 1 {
				n.What += fmt.Sprintf(": over its %s, not its %s", axisWords(axes[len(axes)-2]), axisWords(axes[len(axes)-1]))
			}
			break
		}
		if d.Map.Kind == 0 {
			n.What = "step " + s.site(e, step) + " is taken over two axes"
			if len(d.At) > 1 {
				n.What = "all sums are taken over two axes"
			}
			if axes := s.axesOf(e, t.Steps[step].Args[0]); len(axes) > 1 {
				n.What += ": over its " + axisWords(axes[len(axes)-2]) + " as well"
			}
			break
		}
		if v := t.At(at); t.Tiles(d) {
			n.What = fmt.Sprintf("%s is tiled, not repeated: of %d, such as heads, each reads number i mod %d, not i / %d", s.value(e, v), v.Shape()[d.Map.Axis]*v.Shape()[d.Map.Other], v.Shape()[d.Map.Axis], v.Shape()[d.Map.Other])
			break
		}
		n.What = fmt.Sprintf("%s is read transposed in %s", s.value(e, t.Steps[step].Args[at.Arg]), s.step(e, step))
	case program.Operand:
		now, right := s.value(e, t.At(d.From)), s.value(e, t.Steps[step].Args[at.Arg])
		n.What = fmt.Sprintf("%s reads %s, not %s", s.step(e, step), now, right)
		if now == right {
			n.What = fmt.Sprintf("%s reads another part of %s than it should", s.step(e, step), now)
		}
	case program.Count:
		number, _ := t.Count(step)
		right := t.Steps[number].Value
		if d.Map.N > 0 {
			n.What = fmt.Sprintf("the first of %s terms is left out of %s", short(right), s.site(e, step))
			if d.Map.By == 1 {
				n.What = fmt.Sprintf("the last of %s terms is left out of %s", short(right), s.site(e, step))
			}
			break
		}
		value := right + d.Value
		n.What = fmt.Sprintf("%s divides its sum by %s terms", s.site(e, step), short(value))
		n.Value, n.Right = &value, &right
	case program.Mapped:
		n.What = s.mapped(e, t, d)
	}
	return n
}

// numberBelow is what the number is called that a step below a root takes.
func (s *search) numberBelow(t *program.Parts, step int) string {
	for _, a := range t.Steps[step].Args {
		if n := t.Source(a); t.Steps[n].Prim == program.Number {
			return s.numberWords(t.Program, n)
		}
	}
	return "a number"
}

// site names a step: by its operation and its place in the formula.
func (s *search) site(e *Entry, step int) string {
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

// step names a step for a sentence.
func (s *search) step(e *Entry, step int) string {
	if who, ok := s.operator(e, step); ok {
		return who
	}
	return "step " + s.site(e, step)
}

// value names what a variable shows.
func (s *search) value(e *Entry, v program.Var) string {
	step := e.Program.Source(v)
	if leaf, ok := e.signed(s.m).Moved(step); ok { // what a cache hands on is called by what is put into it
		step = leaf
	}
	switch st := &e.Program.Steps[step]; st.Prim {
	case program.Round:
		return s.value(e, st.Args[0])
	case program.Mask:
		return "the mask"
	case program.Input:
		if n := e.Inputs; st.Index >= 0 && st.Index < len(n) {
			name := Role(s.m.List.Entries[n[st.Index].Entry].Name)
			if n[st.Index].Pass != e.Node.Pass {
				name += " of the pass before"
			}
			return name
		}
	case program.Weight, program.Matrix:
		return Role(e.Weights[st.Index].Name)
	case program.Number:
		if st.Site == "" {
			return short(st.Value)
		}
	}
	return "step " + s.site(e, step)
}

// operator says what a step does to the tensor that it is applied to, by its other operand.
func (s *search) operator(e *Entry, step int) (string, bool) {
	p, st := e.Program, &e.Program.Steps[step]
	other := func(k int) *program.Step { return &p.Steps[p.Source(st.Args[k])] }
	number := func() (float64, bool) {
		for k := range st.Args {
			if o := other(k); o.Prim == program.Number {
				return o.Value, true
			}
		}
		return 0, false
	}
	switch st.Prim {
	case program.Mul:
		if x, ok := number(); ok {
			return fmt.Sprintf("the factor %s", short(x)), true
		}
		for k := range st.Args {
			if o := other(k); o.Prim == program.Weight {
				return "the weight " + Module(e.Weights[o.Index].Name), true
			}
		}
		for k := range st.Args {
			if w, ok := s.ofWeights(e, p.Source(st.Args[k])); ok {
				return "the weight " + w, true
			}
		}
	case program.Div:
		if o := other(1); o.Prim == program.Number {
			return fmt.Sprintf("the division by %s", short(o.Value)), true
		}
	case program.Add:
		if x, ok := number(); ok {
			if number := other(1); number.Prim == program.Number && number.Site != "" {
				return "the " + number.Site, true
			}
			return "the +" + short(x), true
		}
	case program.Tanh, program.Exp, program.Erf, program.Cos, program.Sin, program.Log, program.Log1p, program.Expm1, program.Pow:
		return st.Prim.String(), true
	case program.Sqrt, program.Rsqrt:
		return "the root", true
	}
	return "", false
}

// ofWeights names the weight that a step is computed from, and nothing else but numbers.
func (s *search) ofWeights(e *Entry, step int) (name string, ok bool) {
	for _, i := range e.Program.Ancestors(step) {
		switch st := &e.Program.Steps[i]; st.Prim {
		case program.Input:
			return "", false
		case program.Weight:
			name, ok = Module(e.Weights[st.Index].Name), true
		}
	}
	return name, ok
}

// leftOut says what is missing when a step hands on a value that it is computed from.
func (s *search) leftOut(e *Entry, step int, from program.Var) string {
	p := e.Program
	source := p.Source(from)
	dropped := between(p, source, step)
	forms := map[string]bool{}
	for _, i := range dropped {
		forms[p.Steps[i].Form] = true
	}
	last := step == p.Source(p.Out)
	if p.IsShare(step, source) {
		return s.value(e, from) + " is not divided by its sum"
	}
	switch st := &p.Steps[step]; {
	case st.Prim == program.Max && len(dropped) == 0:
		for _, a := range st.Args {
			if n := p.Source(a); p.Steps[n].Prim == program.Number {
				return fmt.Sprintf("%s, %s, is left out", s.numberWords(p, n), short(p.Steps[n].Value))
			}
		}
	case st.Prim == program.Neg && len(dropped) == 0:
		return "the minus is left out: " + s.value(e, from) + " is taken with its own sign"
	}
	if len(dropped) == 1 {
		st := &p.Steps[step]
		if who, ok := s.operator(e, step); ok {
			if st.Prim == program.Mul && strings.HasPrefix(who, "the weight ") {
				if plain := slices.ContainsFunc(st.Args, func(a program.Var) bool { return p.Steps[p.Source(a)].Prim == program.Weight }); plain {
					return who + " is left out, or is 1"
				}
				return who + " is left out, or is 0: 1+w is 1"
			}
			return who + " is left out"
		}
		if st.Prim == program.Add || st.Prim == program.Sub {
			for _, a := range st.Args {
				if p.Source(a) != source {
					return s.value(e, a) + " is not added"
				}
			}
		}
	}
	if p.Steps[source].Prim == program.Input && last {
		if item := e.itemOf(p.Steps[source].Index); item != nil {
			return fmt.Sprintf("the operation is left out: the result is stream %d of %s", *item, s.value(e, from))
		}
		if item, ok := e.signed(s.m).Item(from); ok && s.stacked(e.Inputs[p.Steps[source].Index].Entry) {
			return fmt.Sprintf("the operation is left out: the result is stream %d of %s", item, s.value(e, from))
		}
		return fmt.Sprintf("the operation is left out: the result is %s", s.value(e, from))
	}
	if st := &p.Steps[step]; len(dropped) == 1 && len(st.Args) == 2 && p.Source(st.Args[0]) == source {
		switch other := s.value(e, st.Args[1]); st.Prim {
		case program.Mul:
			return "the product with " + other + " is left out"
		case program.Div:
			return "the division by " + other + " is left out"
		}
	}
	if len(forms) == 1 && len(dropped) > 1 {
		var names []string
		for _, i := range dropped {
			who, ok := s.operator(e, i)
			if !ok {
				who, ok = s.addendOf(e, i, source)
			}
			if ok && !slices.Contains(names, who) {
				names = append(names, who)
			}
		}
		if len(names) == 1 {
			return names[0] + " is left out"
		} else if len(names) == 2 {
			return strings.Join(names, " and ") + " are left out"
		}
	}
	return fmt.Sprintf("the steps from %s to %s are left out", s.value(e, from), s.site(e, step))
}

// addendOf is the tensor that a step adds to one that comes from a source.
func (s *search) addendOf(e *Entry, step, source int) (string, bool) {
	p, st := e.Program, &e.Program.Steps[step]
	if st.Prim != program.Add && st.Prim != program.Sub || len(st.Args) != 2 {
		return "", false
	}
	for k, a := range st.Args {
		from := slices.Contains(p.Ancestors(p.Source(a)), source)
		if o := st.Args[1-k]; from && !slices.Contains(p.Ancestors(p.Source(o)), source) {
			return "the sum with " + s.value(e, o), true
		}
	}
	return "", false
}

// between are the steps that compute on the way from one to another, that one included.
func between(p *program.Program, from, to int) []int {
	if from < 0 || from >= to {
		return nil
	}
	behind := make([]bool, to+1) // computed from it
	behind[from] = true
	for i := from + 1; i <= to; i++ {
		behind[i] = slices.ContainsFunc(p.Steps[i].Args, func(v program.Var) bool { return behind[p.Source(v)] })
	}
	var all []int
	for _, i := range p.Ancestors(to) {
		if i != from && behind[i] && p.Steps[i].Prim.Computes() {
			all = append(all, i)
		}
	}
	return all
}

// added says what is done to another part of a tensor than it should be.
func (s *search) added(e *Entry, step int, only bool) string {
	p := e.Program
	for _, a := range p.Steps[step].Args {
		if st := &p.Steps[p.Source(a)]; st.Prim.Computes() && len(st.Args) == 2 {
			what := s.value(e, st.Args[1])
			if only {
				return what + " is added to the other part"
			}
			return what + " is added to all of it, not to a part"
		}
	}
	return "what is done to a part is done to all"
}

func primWords(p program.Prim) string {
	switch p {
	case program.Add:
		return "a sum"
	case program.Sub:
		return "a difference"
	case program.Mul:
		return "a product"
	case program.Div:
		return "a quotient"
	case program.Sqrt:
		return "√x"
	case program.Rsqrt:
		return "1/√x"
	case program.Neg:
		return "−x"
	}
	return p.String()
}
