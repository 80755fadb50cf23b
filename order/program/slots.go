package program

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
