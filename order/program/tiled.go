package program

// Tiled reads the operands of all sums of products by turns that are repeated along an axis, where the other operand varies along both: keys and
// values whose heads are tiled, and not repeated. Query head h reads head h mod n of n, not ⌊h·n/Hq⌋. It is nil where fewer than two are, since what
// one of them reads is an edit of its own.
func (p *Program) Tiled() *Edited {
	e := p.Edit()
	n := 0
	for i := range p.Steps {
		if p.Steps[i].Prim != Dot {
			continue
		}
		for arg := range p.Steps[i].Args {
			v, m, ok := p.turned(i, arg)
			if !ok {
				continue
			}
			if v, ok = e.Mapped(v, m); !ok {
				return nil
			}
			e.Read(i, arg, v)
			n++
		}
	}
	return e.ended(n > 1)
}

// turned is an operand of a sum of products, with the axes along which it is repeated at their sizes, and the map by which it is read by turns.
func (p *Program) turned(step, arg int) (v Var, m Map, ok bool) {
	s := &p.Steps[step]
	v = (&Parts{Program: p}).along(step, s.Args[arg])
	other := s.Args[1-arg]
	for a := 0; a+1 < len(v.shape); a++ {
		if v.shape[a] > 1 && v.shape[a+1] > 1 && v.stride[a] != 0 && v.stride[a+1] == 0 && other.stride[a] != 0 && other.stride[a+1] != 0 {
			return v, Map{Kind: Reread, Axis: a, Other: a + 1}, true
		}
	}
	return v, m, false
}
