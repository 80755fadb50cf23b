package program

import "slices"

// neededColumns are, by step, the columns of its result that are needed, in rising order; nil: all. A column is an index of the last axis.
type neededColumns [][]int

// columns works out which columns of the steps are needed for some of the result. It is nil where all are.
func (p *Program) columns(some *Some) neededColumns {
	if some == nil || some.Columns == nil {
		return nil
	}
	n, read := make(neededColumns, len(p.Steps)), make([]bool, len(p.Steps))
	reads := func(v Var, of []int) {
		of = p.columnsIn(v, of)
		switch {
		case !read[v.step]:
			n[v.step] = of
		case n[v.step] == nil || of == nil:
			n[v.step] = nil
		default:
			n[v.step] = union(n[v.step], of)
		}
		read[v.step] = true
	}
	reads(p.Out, some.Columns)
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := &p.Steps[i]
		if s.Prim.leaf() || !read[i] {
			continue
		}
		from := 0
		for _, a := range s.Args {
			switch {
			case s.Prim == Cat && s.Axis == len(s.Shape)-1:
				reads(a, within(n[i], from, from+a.Last()))
				from += a.Last()
			case s.Prim == Cat || s.Prim.byElement():
				reads(a, n[i])
			default:
				reads(a, nil)
			}
		}
	}
	return n
}

// columnsIn are the columns of a step's result that some columns of a view show; nil for all, and where a column of the view is not one of the result.
func (p *Program) columnsIn(v Var, of []int) []int {
	shape := p.Steps[v.step].Shape
	if of == nil || len(shape) == 0 || len(v.shape) == 0 {
		return nil
	}
	width, last := shape[len(shape)-1], len(v.shape)-1
	if width == 0 {
		return nil
	}
	for a, stride := range v.stride[:last] {
		if v.shape[a] > 1 && stride%width != 0 {
			return nil
		}
	}
	all := make([]int, 0, len(of))
	for _, c := range of {
		at := v.off%width + c*v.stride[last]
		if at < 0 || at >= width {
			return nil
		}
		all = append(all, at)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fewOf are the columns that are needed of a step whose elements are functions of elements; nil for another step, and where most are needed.
func (r *run) fewOf(i int) []int {
	s := &r.p.Steps[i]
	if r.few == nil || r.few[i] == nil || !s.Prim.byElement() || s.Prim == Angle || r.a.Together || 4*len(r.few[i]) > s.Shape[len(s.Shape)-1] {
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

// within lists the columns between two indexes, less the first index. It returns nil for all columns.
func within(columns []int, from, to int) []int {
	if columns == nil {
		return nil
	}
	some := []int{}
	for _, c := range columns {
		if c >= from && c < to {
			some = append(some, c-from)
		}
	}
	return some
}

// union is two lists in rising order as one.
func union(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
