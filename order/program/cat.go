package program

// cat copies operands side by side.
func (r *run) cat(i int, out operand) {
	s := &r.p.Steps[i]
	if has := r.slotsOf(i); has != nil {
		r.catRows(s, has, out)
		return
	}
	inner := Size(s.Shape[s.Axis()+1:])
	outer := Size(s.Shape[:s.Axis()])
	at := 0
	for _, v := range s.Args {
		x := r.packed(v)
		n := v.Shape[s.Axis()] * inner
		for k := range outer {
			copy(out.v[k*s.Shape[s.Axis()]*inner+at:][:n], x.v[k*n:])
			if out.e != nil {
				copy(out.e[k*s.Shape[s.Axis()]*inner+at:][:n], x.e[k*n:])
			}
		}
		at += n
	}
}

// catRows is cat along the last axis of the rows that are needed.
func (r *run) catRows(s *Step, has *slots, out operand) {
	for row, at := range has.at {
		if at < 0 {
			continue
		}
		at *= has.width
		for _, v := range s.Args {
			r.gather(out.slice(at, v.Last()), v, row, row+1)
			at += v.Last()
		}
	}
}
