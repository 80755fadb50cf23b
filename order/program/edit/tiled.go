package edit

import "github.com/tracediff/tracediff/order/program"

// Tiled reads the operands of all sums of products by turns that are repeated along an axis, where the other operand varies along both: keys and
// values whose heads are tiled, and not repeated. Query head h reads head h mod n of n, not ⌊h·n/Hq⌋. It is nil where fewer than two are, since what
// one of them reads is an edit of its own.
func Tiled(p *program.Program) *program.Edited {
	e := NewEditor(p)
	n := 0
	for i := range p.Steps {
		if p.Steps[i].Prim != program.Dot {
			continue
		}
		for arg := range p.Steps[i].Args {
			v, m, ok := turned(p, i, arg)
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
func turned(p *program.Program, step, arg int) (v program.Var, m Map, ok bool) {
	s := &p.Steps[step]
	v = (&StepIndex{Program: p}).along(step, s.Args[arg])
	other := s.Args[1-arg]
	for a := 0; a+1 < len(v.Shape); a++ {
		if v.Shape[a] > 1 && v.Shape[a+1] > 1 && v.Stride[a] != 0 && v.Stride[a+1] == 0 && other.Stride[a] != 0 && other.Stride[a+1] != 0 {
			return v, Map{Kind: Reread, Axis: a, Other: a + 1}, true
		}
	}
	return v, m, false
}
