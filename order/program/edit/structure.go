package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// ByRow reports whether a step acts on a row of the result by one number: every path to the result passes a step with
// one number per row, such as a sum or a root, and a row of the result has several numbers.
func ByRow(p *program.Program, step int) bool {
	if p.Out.Last() <= 1 {
		return false
	}
	reached := make([]bool, len(p.Steps))
	reached[step] = wide(p, step)
	for i := step + 1; i < len(p.Steps); i++ {
		for _, a := range p.Steps[i].Args {
			reached[i] = reached[i] || reached[a.Step] && wide(p, i)
		}
		if p.Steps[step].Prim == program.Number { // it is one number wherever it is read
			for _, a := range p.Steps[i].Args {
				reached[i] = reached[i] || a.Step == step && wide(p, i)
			}
		}
	}
	return !reached[p.Out.Step]
}

// wide reports whether a step has several numbers a row.
func wide(p *program.Program, step int) bool {
	shape := p.Steps[step].Shape
	return len(shape) > 0 && shape[len(shape)-1] > 1
}

// Added reports whether a sum takes a step's result.
func Added(p *program.Program, s *program.Step) bool {
	for i := range p.Steps {
		if t := &p.Steps[i]; t.Prim == program.Add || t.Prim == program.Sub || t.Prim == program.Sum {
			for _, a := range t.Args {
				if &p.Steps[a.Step] == s {
					return true
				}
			}
		}
	}
	return false
}

// Activates reports whether a step is the last of a function of one number: of the steps of its operation, the last one, when
// the operation begins with a place where an input may be rounded.
func Activates(p *program.Program, s *program.Step) bool {
	begun := false
	var last *program.Step
	for i := range p.Steps {
		if t := &p.Steps[i]; t.Form == s.Form {
			begun = begun || t.Prim == program.Copy
			if t.Prim.Computes() {
				last = t
			}
		}
	}
	return begun && last.Site == s.Site
}

// Single reports whether the program computes one step, by element.
func Single(p *program.Program) bool {
	n := 0
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Prim.Computes() {
			if n++; !s.Prim.ByElement() || len(s.Args) != 2 {
				return false
			}
		}
	}
	return n == 1
}

// Unsliced extends a view to all indexes of its step along an axis. ok is false for a view that lacks elements along
// other axes.
func Unsliced(p *program.Program, v program.Var, axis int) (whole program.Var, ok bool) {
	all := program.Size(p.Steps[v.Step].Shape)
	if axis >= len(v.Shape) || v.Stride[axis] < 1 || v.Off%v.Stride[axis] != 0 {
		return v, false
	}
	rest := program.Size(v.Shape[:axis]) * program.Size(v.Shape[axis+1:])
	if rest == 0 || all%rest != 0 || all/rest < v.Shape[axis] {
		return v, false
	}
	whole = program.Var{Step: v.Step, Off: 0, Shape: slices.Clone(v.Shape), Stride: v.Stride}
	whole.Shape[axis] = all / rest
	last := 0 // the last element of the view is that of the step
	for a, n := range whole.Shape {
		last += (n - 1) * whole.Stride[a]
	}
	return whole, last == all-1
}
