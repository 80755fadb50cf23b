package redflag

// cache looks at keys and values, [.., heads, S, D], for positions that hold nothing.
func (v *view) cache() error {
	for i := range v.subjects {
		s := &v.subjects[i]
		if !s.role.cached || !s.role.number || len(s.Shape) < 3 || s.dim(2) == 0 || s.elements() == 0 || s.dim(1) > maxRow || !v.look(CacheZero) {
			continue
		}
		zero, first, rows := int64(0), int64(0), int64(0)
		err := v.rows(s, func(i int64, x []float64) (bool, error) {
			rows++
			for _, y := range x {
				if y != 0 {
					return true, nil
				}
			}
			if zero == 0 {
				first = i
			}
			zero++
			return true, nil
		})
		if err != nil {
			return err
		}
		if zero > 0 {
			v.raise(CacheZero, s, []Number{number("vectors", float64(rows)), number("zero", float64(zero)), number("position", float64(first%int64(s.dim(2))))},
				"%d of %d vectors are all zero, the first at %s: position %d of %d", zero, rows, coordinates(s.Shape[:len(s.Shape)-1], first), first%int64(s.dim(2)), s.dim(2))
		}
	}
	return nil
}
