package program

import "slices"

// slots say where the computed rows of a step's result lie: one after the other, without room for the other rows. Attention of a few queries has scores of these
// queries only.
type slots struct {
	at    []int // the place of each row; −1 for a row that is not computed
	count int   // how many rows are computed
	width int   // of a row
}

// slots lists the slots of each step for the needed rows. A step whose result has all rows has nil.
func (p *Program) slots(n needed) []*slots {
	if n == nil {
		return nil
	}
	all := make([]*slots, len(p.Steps))
	for i := range p.Steps {
		if s := &p.Steps[i]; !s.Prim.IsLeaf() && n[i] != nil && p.byRows(i) {
			all[i] = slotsOf(n[i], s.width())
		}
	}
	return all
}

// slotsOf lays out needed rows of a width; nil where all are needed.
func slotsOf(rows []bool, width int) *slots {
	s := &slots{at: make([]int, len(rows)), width: width}
	for row, is := range rows {
		s.at[row] = -1
		if is {
			s.at[row] = s.count
			s.count++
		}
	}
	if s.count == len(rows) {
		return nil
	}
	return s
}

// place is where an element lies; −1 for an element that is not computed. Computed rows that follow each other in the result lie next to each other.
func (s *slots) place(element int) int {
	if s == nil {
		return element
	}
	row := s.at[element/s.width]
	if row < 0 {
		return -1
	}
	return row*s.width + element%s.width
}

// row fills dst with elements of src: the element numbered from, and then every stride-th element. For an element that is not computed dst keeps its number.
func (s *slots) row(dst, src []float64, from, stride int) {
	if stride != 1 {
		for i := range dst {
			if at := s.place(from + i*stride); at >= 0 {
				dst[i] = src[at]
			}
		}
		return
	}
	for len(dst) > 0 {
		n := min(s.width-from%s.width, len(dst))
		if at := s.place(from); at >= 0 {
			copy(dst[:n], src[at:])
		}
		dst, from = dst[n:], from+n
	}
}

// width is how many elements a row of the step's result has.
func (s *Step) width() int { return s.Shape[len(s.Shape)-1] }

// slotsOf are those of a step's result.
func (r *run) slotsOf(step int) *slots {
	if r.slots == nil {
		return nil
	}
	return r.slots[step]
}

// rowsOf is how many rows of a step's result there is room for.
func (r *run) rowsOf(step int) int {
	if s := r.slotsOf(step); s != nil {
		return s.count
	}
	return rowCount(r.p.Steps[step].Shape)
}

// lines is the slice of n elements of a step's result from an element on. All n elements are computed.
func (r *run) lines(step, from, n int) operand {
	return r.whole(step).slice(r.slotsOf(step).place(from), n)
}

// gather writes the rows [from, to) of a view to dst, with bounds if both have bounds. For a row that is not computed dst keeps its numbers.
func (r *run) gather(dst operand, v Var, from, to int) {
	o, s := r.values[v.Step], r.slotsOf(v.Step)
	gather(dst.v, o.v, s, v, from, to)
	if dst.e != nil && o.e != nil {
		gather(dst.e, o.e, s, v, from, to)
	}
}

// gatherColumns writes some columns of a row of a view that is computed, with their bounds where there are some.
func (r *run) gatherColumns(dst operand, v Var, row int, columns []int) {
	o, s, last := r.values[v.Step], r.slotsOf(v.Step), len(v.Shape)-1
	from := v.row(row, make([]int, last))
	for k, c := range columns {
		at := s.place(from + c*v.Stride[last])
		dst.v[k] = o.v[at]
		if dst.e != nil && o.e != nil {
			dst.e[k] = o.e[at]
		}
	}
}

// spare has room for results of steps, zeros, by how many numbers a result has: results of evaluations of a part, which are not read any more. Much of the time
// of a small part would go into clearing memory.
type spare map[int][]operand

// spareNumbers is how many numbers a result has at least whose room is kept.
const spareNumbers = 1 << 12

// roomOf is room for the result of a step: where some of its rows are, the room that has these.
func (r *run) roomOf(i int) operand {
	if len(r.values[i].v) > 0 {
		return r.values[i]
	}
	n := r.rowsOf(i) * r.p.Steps[i].width()
	if all := r.spare[n]; len(all) > 0 {
		r.spare[n] = all[:len(all)-1]
		return all[len(all)-1]
	}
	return r.room(n)
}

// free clears a result, and keeps its room for another result. Nothing may read the result any more.
func (r *run) free(i int, o operand) {
	s := &r.p.Steps[i]
	if r.spare == nil || r.need == nil || r.need[i] == nil || !r.p.byRows(i) || len(o.v) < spareNumbers {
		return
	}
	width := s.width()
	columns := r.fewOf(i)
	if s.Prim == Affine && len(s.Args) == 2 && r.few != nil { // see [run.affine]
		columns = r.few[i]
	}
	for _, x := range [][]float64{o.v, o.e} {
		if columns == nil {
			clear(x)
			continue
		}
		for ; len(x) > 0; x = x[width:] {
			for _, c := range columns {
				x[c] = 0
			}
		}
	}
	r.spare[len(o.v)] = append(r.spare[len(o.v)], o)
}

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

// within keeps the elements with an index in [from, to) along an axis. The result has the element numbers in the
// tensor with only these indexes.
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
