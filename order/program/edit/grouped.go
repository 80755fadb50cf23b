package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// MeansOfParts takes the squares that are summed over the last axis in parts of so many elements, each with a mean of its own: of a norm
// over all heads those of each head.
func MeansOfParts(p *program.Program, n int) *program.Edited {
	e := NewEditor(p)
	some := false
	for _, sq := range Means(p) {
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Prim == program.Sum && s.Args[0].Step == sq && s.Args[0].Last()%n == 0 && s.Args[0].Last() > n {
				if !sumOfParts(e, i, n) {
					return nil
				}
				some = true
			}
		}
	}
	return e.ended(some)
}

// sumOfParts sums a row in parts of n elements: steps that compute by element from the sum then have as many columns
// as the row. It reports whether all readers of the sum compute by element.
func sumOfParts(e *Editor, sum, n int) bool {
	p := e.Before
	row := p.Steps[sum].Args[0]
	last := len(row.Shape) - 1
	one := e.Sum("", e.Split(e.Cat(last, row), last, row.Last()/n))
	whole := slices.Clone(one.Shape)
	whole[len(whole)-1] = n
	now := map[int]program.Var{sum: e.Reshape(e.held(e.Expand(one, whole)), row.Shape...)}
	for i := sum + 1; i < len(p.Steps) && e.Err() == nil; i++ {
		s := &p.Steps[i]
		args, some := slices.Clone(s.Args), false
		for k, a := range s.Args {
			if v, ok := now[a.Step]; ok {
				if len(a.Shape) != len(row.Shape) || !slices.Equal(a.Shape[:last], row.Shape[:last]) {
					return false
				}
				args[k], some = v, true
			}
		}
		switch {
		case !some:
		case p.Result(i).Last() == row.Last() && s.Prim.ByElement():
			e.Become(i, s.Prim, args...)
		case p.Result(i).Last() != 1 || !s.Prim.ByElement():
			return false
		default:
			if _, mean := Divisor(p, i); mean {
				args[1] = e.Literal(float64(n))
			}
			v := e.Move(i)
			for k := range args {
				args[k] = args[k].Expanded(row.Shape)
			}
			e.Steps[v.Step].Shape, e.Steps[v.Step].Args = row.Shape, args
			now[i] = program.Var{Step: v.Step, Shape: row.Shape, Stride: program.Contiguous(row.Shape)}
		}
	}
	return e.Err() == nil
}
