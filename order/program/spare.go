package program

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
