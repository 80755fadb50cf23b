package program

import "slices"

// across takes a mean over the axis before the last, in place of the last: one for each element of the last axis, which takes part where
// that of its row did.
func (d Edit) across(e *Editor, t *Parts, step int) bool {
	s := &t.Steps[step]
	last := len(s.Shape) - 1
	if s.Prim != Sum || last < 1 || len(s.Args[0].shape) != last+1 {
		return false
	}
	axes := make([]int, last+1)
	for a := range axes {
		axes[a] = a
	}
	axes[last], axes[last-1] = last-1, last
	x := s.Args[0]
	y := e.Permute(e.Sum("", e.Permute(x, axes...)), axes...)
	if e.err != nil {
		return false
	}
	now := map[int]Var{step: y.to(x.shape)}
	for i := step + 1; i < len(t.Steps); i++ {
		st := &t.Steps[i]
		if !slices.ContainsFunc(st.Args, func(a Var) bool { _, ok := now[a.step]; return ok }) {
			continue
		}
		args := slices.Clone(st.Args)
		one := st.Prim.byElement() && slices.Equal(st.Shape, s.Shape)
		for k, a := range args {
			if v, ok := now[a.step]; ok {
				args[k] = v
			} else if one {
				args[k] = a.to(x.shape)
			}
		}
		if number, ok := t.count(i); ok && t.Steps[i].Args[0].step == step {
			n := t.Steps[number].Value / float64(x.shape[last]) * float64(x.shape[last-1])
			args[1] = e.Literal(n).to(x.shape)
		}
		if one {
			copied := *st
			copied.Args, copied.Shape = args, x.shape
			now[i] = e.add(copied)
			continue
		}
		for k, a := range st.Args {
			if _, ok := now[a.step]; !ok {
				continue
			}
			if !slices.Equal(a.shape, x.shape) {
				return false
			}
			e.Read(i, k, args[k])
		}
	}
	return e.err == nil
}

// Along are the edits by which all operands that vary along one axis, and are repeated along another, vary along that one and are repeated
// along the first: a table by token that is read by head.
func (t *Parts) Along() []Edit {
	type axes struct{ from, to int }
	at := map[axes][]Place{}
	var order []axes
	for _, i := range t.Firsts() {
		for k, v := range t.Steps[i].Args {
			for a := range v.shape {
				for b := range v.shape {
					if !v.along(a, b) {
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

// along reports whether a view varies along one axis and is repeated along another that is not longer.
func (v Var) along(from, to int) bool {
	return from != to && v.shape[from] > 1 && v.shape[to] > 1 && v.stride[from] != 0 && v.stride[to] == 0 && v.shape[to] <= v.shape[from]
}

// Tiles reports whether the exchange of two axes tiles a tensor that is repeated: one of them has its elements, and along the other it is
// repeated.
func (t *Parts) Tiles(d Edit) bool {
	v := t.At(d.At[0])
	return d.Map.Kind == Swap && (v.stride[d.Map.Axis] == 0) != (v.stride[d.Map.Other] == 0)
}
