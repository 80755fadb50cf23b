package program

import "slices"

// SoftmaxOf is the operand of the softmax whose last step is a quotient: exp(x − max x) / Σ.
func (p *Program) SoftmaxOf(step int) (x Var, ok bool) {
	s := &p.Steps[step]
	if s.Prim != Div {
		return x, false
	}
	exp, sum := s.Args[0].step, s.Args[1].step
	if p.Steps[exp].Prim != Exp || p.Steps[sum].Prim != Sum || p.Steps[sum].Args[0].step != exp {
		return x, false
	}
	sub := p.Steps[exp].Args[0].step
	if p.Steps[sub].Prim != Sub || p.Steps[p.Steps[sub].Args[1].step].Prim != RowMax {
		return x, false
	}
	return p.Steps[sub].Args[0], true
}

// Softmaxes are the last steps of softmaxes.
func (p *Program) Softmaxes() []int {
	var all []int
	for i := range p.Steps {
		if _, ok := p.SoftmaxOf(i); ok {
			all = append(all, i)
		}
	}
	return all
}

// SoftmaxOver takes all softmaxes over an axis counted from the last, which is 0.
func (p *Program) SoftmaxOver(fromLast int) *Edited {
	e := p.Edit()
	all := p.Softmaxes()
	for _, i := range all {
		x, _ := p.SoftmaxOf(i)
		last := len(x.shape) - 1
		if fromLast > last {
			return nil
		}
		axes := make([]int, last+1)
		for a := range axes {
			axes[a] = a
		}
		axes[last], axes[last-fromLast] = axes[last-fromLast], axes[last]
		y := e.Permute(x, axes...)
		exp := e.Exp("", e.Sub("", y, e.RowMax(y)))
		e.Pass(i, e.Permute(e.Div("", exp, e.Sum("", exp)), axes...))
	}
	return e.ended(len(all) > 0)
}

// SoftmaxOfScaled takes all softmaxes of their scores times a number.
func (p *Program) SoftmaxOfScaled(by float64) *Edited {
	e := p.Edit()
	all := p.Softmaxes()
	for _, i := range all {
		x, _ := p.SoftmaxOf(i)
		y := e.Mul("", x, e.Scalar("", by))
		exp := e.Exp("", e.Sub("", y, e.RowMax(y)))
		e.Pass(i, e.Div("", exp, e.Sum("", exp)))
	}
	return e.ended(len(all) > 0)
}

// SoftmaxWith has n scores of 0 more in all softmaxes, whose probabilities are dropped.
func (p *Program) SoftmaxWith(n float64) *Edited {
	e := p.Edit()
	all := p.Softmaxes()
	for _, i := range all {
		exp, sum := p.Steps[i].Args[0].step, p.Steps[i].Args[1].step
		top := p.Steps[p.Steps[exp].Args[0].step].Args[1].step
		e.Read(i, 1, e.Add("", p.Result(sum), e.Mul("", e.Literal(n), e.Exp("", e.Neg(p.Result(top))))))
	}
	return e.ended(len(all) > 0)
}

// Means are the operands whose squares are summed, where the mean is not taken off before.
func (p *Program) Means() []int {
	var all []int
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Prim != Sum {
			continue
		}
		sq := &p.Steps[s.Args[0].step]
		if sq.Prim == Mul && sameView(sq.Args[0], sq.Args[1]) && p.Steps[sq.Args[0].step].Prim != Sub {
			all = append(all, s.Args[0].step)
		}
	}
	return all
}

// MeanOff takes the mean off what is squared and summed, for all steps that read it.
func (p *Program) MeanOff() *Edited {
	e := p.Edit()
	all := p.Means()
	for _, sq := range all {
		x := p.Steps[sq].Args[0]
		y := e.Sub("", x, e.Mean("", x))
		for i := range p.Steps {
			for a, v := range p.Steps[i].Args {
				if sameView(v, x) {
					e.Read(i, a, y)
				}
			}
		}
	}
	return e.ended(len(all) > 0)
}

// Gates are the steps that hand on what is above 0 of a difference.
func (p *Program) Gates() []int {
	var all []int
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Prim == Max && len(s.Args) == 2 {
			zero, d := &p.Steps[s.Args[0].step], &p.Steps[s.Args[1].step]
			if zero.Prim == Number && zero.Value == 0 && d.Prim == Sub {
				all = append(all, i)
			}
		}
	}
	return all
}

// Unshifted hands on what a difference was taken of, where the difference is above 0.
func (p *Program) Unshifted() *Edited {
	e := p.Edit()
	all := p.Gates()
	for _, i := range all {
		d := p.Steps[i].Args[1]
		e.Pass(i, e.Mul("", p.Steps[d.step].Args[0], e.Gate(d)))
	}
	return e.ended(len(all) > 0)
}

// Of a primitive are the steps of it.
func (p *Program) Of(prim Prim) []int {
	var all []int
	for i := range p.Steps {
		if p.Steps[i].Prim == prim {
			all = append(all, i)
		}
	}
	return all
}

// Windows gives all masks another window.
func (p *Program) Windows(window float64) *Edited {
	e := p.Edit()
	all := p.Of(Mask)
	for _, i := range all {
		e.Step(i).Value = window
	}
	return e.ended(len(all) > 0)
}

// Ahead lets queries see some keys ahead in all masks.
func (p *Program) Ahead(n int) *Edited {
	e := p.Edit()
	all := p.Of(Mask)
	for _, i := range all {
		e.Step(i).Rows = n
	}
	return e.ended(len(all) > 0)
}

// Frequencies gives all vectors of constants that positions are multiplied by other values: those that are as long as the first.
func (p *Program) Frequencies(change func([]float64) []float64) *Edited {
	e := p.Edit()
	all := p.Of(Vector)
	for _, i := range all {
		if len(p.Steps[i].Values) != len(p.Steps[all[0]].Values) {
			continue
		}
		v := change(slices.Clone(p.Steps[i].Values))
		if v == nil {
			return nil
		}
		e.SetVector(i, v)
	}
	return e.ended(len(all) > 0)
}

// Positions gives all angles other positions.
func (p *Program) Positions(change func(e *Editor, positions Var) Var) *Edited {
	e := p.Edit()
	all := p.Of(Angle)
	for _, i := range all {
		e.Read(i, 1, change(e, p.Steps[i].Args[1]))
	}
	return e.ended(len(all) > 0)
}

// ended is the program if there was something to edit; else nil.
func (e *Editor) ended(some bool) *Edited {
	if !some {
		return nil
	}
	d, err := e.End()
	if err != nil {
		return nil
	}
	return d
}
