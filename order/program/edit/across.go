package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// across takes a mean over the axis before the last, in place of the last: one for each element of the last axis, which takes part where
// that of its row did.
func (d Edit) across(e *Editor, t *StepIndex, step int) bool {
	s := &t.Steps[step]
	last := len(s.Shape) - 1
	if s.Prim != program.Sum || last < 1 || len(s.Args[0].Shape) != last+1 {
		return false
	}
	x := s.Args[0]
	y := exchangedIn(e.Sum("", exchangedIn(x, last, last-1)), last, last-1)
	if e.Err() != nil {
		return false
	}
	now := map[int]program.Var{step: y.Expanded(x.Shape)}
	for i := step + 1; i < len(t.Steps); i++ {
		st := &t.Steps[i]
		if !slices.ContainsFunc(st.Args, func(a program.Var) bool { _, ok := now[a.Step]; return ok }) {
			continue
		}
		args := slices.Clone(st.Args)
		one := st.Prim.ByElement() && slices.Equal(st.Shape, s.Shape)
		for k, a := range args {
			if v, ok := now[a.Step]; ok {
				args[k] = v
			} else if one {
				args[k] = a.Expanded(x.Shape)
			}
		}
		if number, ok := Divisor(t.Program, i); ok && t.Steps[i].Args[0].Step == step {
			n := t.Steps[number].Number().Value / float64(x.Shape[last]) * float64(x.Shape[last-1])
			args[1] = e.Literal(n).Expanded(x.Shape)
		}
		if one {
			copied := *st
			copied.Args, copied.Shape = args, x.Shape
			now[i] = e.Append(copied)
			continue
		}
		for k, a := range st.Args {
			if _, ok := now[a.Step]; !ok {
				continue
			}
			if !slices.Equal(a.Shape, x.Shape) {
				return false
			}
			e.Read(i, k, args[k])
		}
	}
	return e.Err() == nil
}

// Along returns edits that exchange two axes of all operands that vary along the first axis and are repeated along
// the second. After the edit the operands vary along the second axis and are repeated along the first: a table by
// token is read by head.
func (t Edits) Along() []Edit {
	type axes struct{ from, to int }
	at := map[axes][]Place{}
	var order []axes
	for _, i := range t.Firsts() {
		for k, v := range t.Steps[i].Args {
			for a := range v.Shape {
				for b := range v.Shape {
					if !along(v, a, b) {
						continue
					}
					x := axes{a, b}
					if at[x] == nil {
						order = append(order, x)
					}
					at[x] = append(at[x], Place{t.sig[i], k})
				}
			}
		}
	}
	var all []Edit
	for _, x := range order {
		all = append(all, Edit{Class: Axis, At: at[x], Map: Map{Kind: Along, Axis: x.from, Other: x.to}})
	}
	return all
}

// along reports whether a view varies along the axis from and is repeated along the axis to, and to is not longer
// than from.
func along(v program.Var, from, to int) bool {
	return from != to && v.Shape[from] > 1 && v.Shape[to] > 1 && v.Stride[from] != 0 && v.Stride[to] == 0 && v.Shape[to] <= v.Shape[from]
}

// Tiles reports whether the exchange of two axes tiles a repeated tensor: the tensor varies along one axis, and is
// repeated along the other.
func (t *StepIndex) Tiles(d Edit) bool {
	v := t.At(d.At[0])
	return d.Map.Kind == Swap && (v.Stride[d.Map.Axis] == 0) != (v.Stride[d.Map.Other] == 0)
}
