package program

import "slices"

// neededColumns are, by step, the columns of its result that are needed, in rising order; nil: all. A column is an index of the last axis.
type neededColumns [][]int

// columns lists the columns of each step that some of the result needs. It is nil if all columns are needed. It follows each element of the result back to the
// elements that it is copied from or computed from.
func (p *Program) columns(some *Some) neededColumns {
	if some == nil || some.Columns == nil {
		return nil
	}
	of := make([][]int, len(p.Steps)) // elements that are needed, where some is
	part, whole := make([]bool, len(p.Steps)), make([]bool, len(p.Steps))
	reads := func(v Var, elements []int) {
		part[v.Step] = true
		for _, e := range elements {
			of[v.Step] = append(of[v.Step], v.source(e))
		}
	}
	reads(p.Out, some.elements(p.Out.Shape))
	n := make(neededColumns, len(p.Steps))
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := &p.Steps[i]
		if s.Prim.IsLeaf() || !part[i] && !whole[i] {
			continue
		}
		if !whole[i] {
			slices.Sort(of[i])
			of[i] = slices.Compact(of[i])
			n[i] = columnsOf(of[i], s.Shape[len(s.Shape)-1])
		}
		switch {
		case whole[i] || s.Prim != Cat && !s.Prim.ByElement():
			for _, a := range s.Args {
				whole[a.Step] = true
			}
		case s.Prim == Cat:
			from := 0
			for _, a := range s.Args {
				to := from + a.Shape[s.Axis()]
				reads(a, within(of[i], s.Shape, s.Axis(), from, to))
				from = to
			}
		default:
			for _, a := range s.Args {
				if slices.Equal(a.Shape, s.Shape) {
					reads(a, of[i])
				} else {
					whole[a.Step] = true
				}
			}
		}
		of[i] = nil
	}
	return n
}

// elements are those of a tensor that are asked for.
func (s *Some) elements(shape []int) []int {
	var all []int
	width, inner, axis := shape[len(shape)-1], Size(shape[s.Axis+1:len(shape)-1]), shape[s.Axis]
	for outer := range Size(shape[:s.Axis]) {
		for _, k := range s.Keep {
			for row := range inner {
				for _, c := range s.Columns {
					all = append(all, (((outer*axis+k)*inner)+row)*width+c)
				}
			}
		}
	}
	return all
}

// source is the place of a view's element in the result that is viewed.
func (v Var) source(element int) int {
	at := v.Off
	for a := len(v.Shape) - 1; a >= 0; a-- {
		at += element % v.Shape[a] * v.Stride[a]
		element /= v.Shape[a]
	}
	return at
}

// columnsOf are the columns that some elements lie in, of rows of a width, in rising order.
func columnsOf(elements []int, width int) []int {
	all := make([]int, 0, len(elements))
	for _, e := range elements {
		all = append(all, e%width)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fewOf are the columns that are needed of a step whose elements are functions of elements; nil for another step, and where most are needed.
func (r *run) fewOf(i int) []int {
	s := &r.p.Steps[i]
	if r.few == nil || r.few[i] == nil || !s.Prim.ByElement() || s.Prim == Angle || r.a.Together || 4*len(r.few[i]) > s.Shape[len(s.Shape)-1] {
		return nil
	}
	return r.few[i]
}

// applyTo is apply for some columns of rows of a width.
func (r *run) applyTo(columns []int, i, width int, out, x, y operand) {
	some := out.picked(columns, width)
	r.apply(i, some, x.picked(columns, width), y.picked(columns, width))
	for k, v := range some.v {
		at := k/len(columns)*width + columns[k%len(columns)]
		if out.v[at] = v; out.e != nil {
			out.e[at] = some.e[k]
		}
	}
}

// picked are some columns of rows of a width.
func (o operand) picked(columns []int, width int) operand {
	pick := func(x []float64) []float64 {
		if x == nil {
			return nil
		}
		some := make([]float64, 0, len(x)/width*len(columns))
		for ; len(x) >= width; x = x[width:] {
			for _, c := range columns {
				some = append(some, x[c])
			}
		}
		return some
	}
	return operand{v: pick(o.v), e: pick(o.e)}
}

// within keeps the elements with an index in [from, to) along an axis. The result has the numbers of the elements in the tensor of these indexes alone.
func within(elements, shape []int, axis, from, to int) []int {
	var some []int
	inner := Size(shape[axis+1:])
	for _, e := range elements {
		if at := e / inner % shape[axis]; at >= from && at < to {
			some = append(some, (e/inner/shape[axis]*(to-from)+at-from)*inner+e%inner)
		}
	}
	return some
}
