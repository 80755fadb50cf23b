package program

// spare has room for results of steps, zeros, by how many numbers a result has: results of evaluations of a part, which are not read any more. Much of the time
// of a small part would go into clearing memory.
type spare map[int][]operand

// spareNumbers is how many numbers a result has at least whose room is kept.
const spareNumbers = 1 << 12

// roomOf is room for the result of a step.
func (r *run) roomOf(i int) operand {
	n := size(r.p.Steps[i].Shape)
	if all := r.spare[n]; len(all) > 0 {
		r.spare[n] = all[:len(all)-1]
		return all[len(all)-1]
	}
	return r.room(n)
}

// free clears the rows of a result that were computed, and keeps its room for another result. Nothing may read the result any more.
func (r *run) free(i int, o operand) {
	s := &r.p.Steps[i]
	if r.spare == nil || r.need == nil || r.need[i] == nil || len(o.v) < spareNumbers || !(s.Prim.byElement() || s.Prim.byRow() || s.Prim == Dot || s.Prim == Affine) {
		return
	}
	width := s.Shape[len(s.Shape)-1]
	columns := r.fewOf(i)
	if s.Prim == Affine && r.few != nil {
		columns = r.few[i]
	}
	for _, x := range [][]float64{o.v, o.e} {
		if x == nil {
			continue
		}
		for _, at := range r.need.places(i, width) {
			if columns == nil {
				clear(x[at.from:at.to])
				continue
			}
			for row := at.from; row < at.to; row += width {
				for _, c := range columns {
					x[row+c] = 0
				}
			}
		}
	}
	r.spare[len(o.v)] = append(r.spare[len(o.v)], o)
}

// place is where numbers lie, one after the other.
type place struct{ from, to int }

// places are those of the rows of a step's result that are needed, of a width; nil for all.
func (n needed) places(step, width int) []place {
	if n == nil || n[step] == nil {
		return nil
	}
	rows := []place{}
	for row, is := range n[step] {
		switch last := len(rows) - 1; {
		case !is:
		case last >= 0 && rows[last].to == row*width:
			rows[last].to += width
		default:
			rows = append(rows, place{row * width, (row + 1) * width})
		}
	}
	return rows
}
