package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// inAll says what a step with a number comes to that is taken twice.
func (s *search) inAll(e *Entry, step int) string {
	st := &e.Program.Steps[step]
	for _, a := range st.Args {
		o := &e.Program.Steps[e.Program.Source(a)]
		if o.Prim != program.Number {
			continue
		}
		x := o.Value * o.Value
		text := ""
		switch st.Prim {
		case program.Mul:
			text = ": " + short(x) + " in all"
			if strings.HasPrefix(o.Site, "√(") { // a constant of the formula
				text += ", as if it were not a root"
			}
		case program.Div:
			text = ": by " + short(x) + " in all"
		case program.Add:
			return fmt.Sprintf(": +%s in all", short(2*o.Value))
		default:
			return ""
		}
		if called := s.called(x, o.Value, ""); called != "" {
			text += " (" + called + ")"
		}
		return text
	}
	return ""
}

// constant names another number.
func (s *search) constant(e *Entry, step int, v number) Name {
	p := e.Program
	right, value := p.Steps[step].Value, v.value
	n := Name{Site: s.site(e, step), Right: &right, Value: &value}
	what := s.numberWords(p, step)
	called := s.called(value, right, what)
	for _, f := range s.numbers {
		if f.plain && same(f.value, value) && slices.Contains(strings.Split(called, ", "), f.words) {
			n.Equal = append(n.Equal, Field{f.field, f.value})
		}
	}
	n.Fields = s.fields(right, what)
	if len(n.Fields) == 0 { // it is a function of one
		for _, f := range s.numbers {
			if !f.plain && same(f.value, right) {
				n.Fields = append(n.Fields, Field{f.words, right})
				break
			}
		}
	}
	text := short(value)
	switch {
	case called != "":
		text += " (" + called + ")"
	case v.field == "" && v.words != "": // how it was rounded
		text += " (" + v.words + ")"
	}
	if value == 0 && what != "epsilon" {
		n.What = what + " is 0"
	} else {
		n.What = what + " is " + text
	}
	return n
}

// same reports whether two numbers are one that was rounded to float32.
func same(a, b float64) bool { return float32(a) == float32(b) }

// numberWords say what a number is, by what stands around it.
func (s *search) numberWords(p *program.Program, step int) string {
	readers := readersOf(p, step)
	has := func(test func(i int) bool) bool { return slices.ContainsFunc(readers, test) }
	after := func(i int, prims ...program.Prim) bool {
		for _, k := range readersOf(p, i) {
			if slices.Contains(prims, p.Steps[k].Prim) {
				return true
			}
		}
		return false
	}
	switch {
	case has(func(i int) bool { return p.Steps[i].Prim == program.Add && after(i, program.Rsqrt, program.Sqrt) }):
		return "epsilon"
	case has(func(i int) bool { return p.Steps[i].Prim == program.Max && after(i, program.Sqrt, program.Rsqrt) }):
		return "the floor under the root"
	case has(func(i int) bool { return p.Steps[i].Prim == program.Div && after(i, program.Tanh) }) && len(readers) > 1 || caps(p, step):
		return "the soft cap"
	case has(func(i int) bool { return p.Steps[i].Prim == program.Mul }):
		return "the factor"
	case has(func(i int) bool { return p.Steps[i].Prim == program.Div }):
		return "the divisor"
	}
	if n := p.Steps[step].Site; n != "" {
		return n
	}
	return "a number"
}

// caps reports whether a number is one of two that are the same and stand on both sides of a tanh: what is divided by one goes through it,
// and is multiplied by the other.
func caps(p *program.Program, step int) bool {
	for i := range p.Steps {
		if p.Steps[i].Prim != program.Tanh {
			continue
		}
		div := p.Source(p.Steps[i].Args[0])
		if p.Steps[div].Prim != program.Div {
			continue
		}
		below := p.Source(p.Steps[div].Args[1])
		for _, mul := range readersOf(p, i) {
			if p.Steps[mul].Prim != program.Mul || p.Steps[below].Prim != program.Number {
				continue
			}
			for _, a := range p.Steps[mul].Args {
				above := p.Source(a)
				if p.Steps[above].Prim == program.Number && p.Steps[above].Value == p.Steps[below].Value && (step == below || step == above) {
					return true
				}
			}
		}
	}
	return false
}

// readersOf are the steps that read a result.
func readersOf(p *program.Program, step int) []int {
	var all []int
	for i := range p.Steps {
		if slices.ContainsFunc(p.Steps[i].Args, func(v program.Var) bool { return p.Source(v) == step }) {
			all = append(all, i)
		}
	}
	return all
}
