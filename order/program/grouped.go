package program

import "slices"

// MeansOfParts takes the squares that are summed over the last axis in parts of so many elements, each with a mean of its own: of a norm
// over all heads those of each head.
func (p *Program) MeansOfParts(n int) *Edited {
	e := p.Edit()
	some := false
	for _, sq := range p.Means() {
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Prim == Sum && s.Args[0].step == sq && s.Args[0].Last()%n == 0 && s.Args[0].Last() > n {
				if !e.sumOfParts(i, n) {
					return nil
				}
				some = true
			}
		}
	}
	return e.ended(some)
}

// sumOfParts sums a row in parts of n elements: what is computed from the sum by element has then as many columns as the row. It reports
// whether all that reads the sum is.
func (e *Editor) sumOfParts(sum, n int) bool {
	p := e.p
	row := p.Steps[sum].Args[0]
	last := len(row.shape) - 1
	one := e.Sum("", e.Split(e.Cat(last, row), last, row.Last()/n))
	whole := slices.Clone(one.shape)
	whole[len(whole)-1] = n
	now := map[int]Var{sum: e.Reshape(e.Held(e.Expand(one, whole)), row.shape...)}
	for i := sum + 1; i < len(p.Steps) && e.err == nil; i++ {
		s := &p.Steps[i]
		args, some := slices.Clone(s.Args), false
		for k, a := range s.Args {
			if v, ok := now[a.step]; ok {
				if len(a.shape) != len(row.shape) || !slices.Equal(a.shape[:last], row.shape[:last]) {
					return false
				}
				args[k], some = v, true
			}
		}
		switch {
		case !some:
		case p.Result(i).Last() == row.Last() && s.Prim.byElement():
			e.Become(i, s.Prim, args...)
		case p.Result(i).Last() != 1 || !s.Prim.byElement():
			return false
		default:
			if _, mean := p.count(i); mean {
				args[1] = e.Literal(float64(n))
			}
			v := e.Move(i)
			for k := range args {
				args[k] = args[k].to(row.shape)
			}
			e.steps[v.step].Shape, e.steps[v.step].Args = row.shape, args
			now[i] = Var{step: v.step, shape: row.shape, stride: contiguous(row.shape)}
		}
	}
	return e.err == nil
}
