package program

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program/functions"
)

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

// IsShare reports whether a step divides a value by its own sum, or by that and a small number.
func (p *Program) IsShare(step, value int) bool {
	s := &p.Steps[step]
	if s.Prim != Div || p.origin(s.Args[0].step) != p.origin(value) {
		return false
	}
	sum := p.origin(s.Args[1].step)
	if add := &p.Steps[sum]; add.Prim == Add && p.Steps[add.Args[1].step].Prim == Number {
		sum = p.origin(add.Args[0].step)
	}
	return p.Steps[sum].Prim == Sum && p.origin(p.Steps[sum].Args[0].step) == p.origin(value)
}

// origin is the step whose result a step hands on, laid out anew or rounded.
func (p *Program) origin(step int) int {
	for s := &p.Steps[step]; s.Prim == Round || s.Prim == Cat && len(s.Args) == 1; s = &p.Steps[step] {
		step = s.Args[0].step
	}
	return step
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

// SoftmaxOfAll takes softmaxes of all of which their operands are a part that was chosen, and then that part.
func (p *Program) SoftmaxOfAll() *Edited {
	e, some := p.Edit(), false
	for _, i := range p.Softmaxes() {
		x, _ := p.SoftmaxOf(i)
		g := &p.Steps[p.origin(x.step)]
		if g.Prim != Gather || g.Axis != len(g.Shape)-1 || !slices.Equal(x.shape, g.Shape) {
			continue
		}
		e.Pass(i, e.Gather(g.Axis, e.softmax(g.Args[0]), g.Args[1]))
		some = true
	}
	return e.ended(some)
}

// SoftmaxOfChosen takes softmaxes of the part that is chosen of them alone.
func (p *Program) SoftmaxOfChosen() *Edited {
	e, some := p.Edit(), false
	for i := range p.Steps {
		g := &p.Steps[i]
		if g.Prim != Gather || g.Axis != len(g.Shape)-1 {
			continue
		}
		x, ok := p.SoftmaxOf(p.origin(g.Args[0].step))
		if !ok || !slices.Equal(x.shape, g.Args[0].shape) {
			continue
		}
		e.Pass(i, e.softmax(e.Gather(g.Axis, x, g.Args[1])))
		some = true
	}
	return e.ended(some)
}

// softmax is exp(x − max x) / Σ.
func (b *Builder) softmax(x Var) Var {
	exp := b.Exp("", b.Sub("", x, b.RowMax(x)))
	return b.Div("", exp, b.Sum("", exp))
}

// SoftmaxBy takes a function of each score in the place of all softmaxes.
func (p *Program) SoftmaxBy(function func(e *Editor, x Var) Var) *Edited {
	e := p.Edit()
	all := p.Softmaxes()
	for _, i := range all {
		x, _ := p.SoftmaxOf(i)
		e.Pass(i, function(e, x))
	}
	return e.ended(len(all) > 0)
}

// Joined are the tensors that are put behind each other along the last axis to be the operand of a softmax: the first softmax of which it
// is one.
func (p *Program) Joined() []Var {
	for _, i := range p.Softmaxes() {
		if cat := p.joinedFor(i); cat >= 0 {
			return p.Steps[cat].Args
		}
	}
	return nil
}

// joinedFor is the step that puts the operand of a softmax together, −1 where none does.
func (p *Program) joinedFor(softmax int) int {
	x, _ := p.SoftmaxOf(softmax)
	step := p.origin(x.step)
	for s := &p.Steps[step]; s.Prim == Sub && p.Steps[p.origin(s.Args[1].step)].Prim != Number; s = &p.Steps[step] { // what is taken off all changes nothing
		step = p.origin(s.Args[0].step)
	}
	if s := &p.Steps[step]; s.Prim != Cat || s.Axis != len(s.Shape)-1 {
		return -1
	}
	return step
}

// SoftmaxWithout gives a part of what is put together for a softmax a score that counts as nothing.
func (p *Program) SoftmaxWithout(part int, lowest float64) *Edited {
	e, some := p.Edit(), false
	for _, i := range p.Softmaxes() {
		cat := p.joinedFor(i)
		if cat < 0 || part >= len(p.Steps[cat].Args) {
			continue
		}
		args := slices.Clone(p.Steps[cat].Args)
		args[part] = e.Expand(e.Literal(lowest), args[part].shape)
		e.Become(cat, Cat, args...)
		some = true
	}
	return e.ended(some)
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
		e.Pass(i, e.Permute(e.softmax(e.Permute(x, axes...)), axes...))
	}
	return e.ended(len(all) > 0)
}

// SoftmaxOfScaled takes all softmaxes of their scores times a number.
func (p *Program) SoftmaxOfScaled(by float64) *Edited {
	e := p.Edit()
	all := p.Softmaxes()
	for _, i := range all {
		x, _ := p.SoftmaxOf(i)
		e.Pass(i, e.softmax(e.Mul("", x, e.Scalar("", by))))
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

// SoftmaxOfBlocks takes all softmaxes over whole blocks of n elements alone: what is behind the last one has no probability. It is nil for rows without a whole block.
func (p *Program) SoftmaxOfBlocks(n int) *Edited {
	e := p.Edit()
	all := p.Softmaxes()
	for _, i := range all {
		x, _ := p.SoftmaxOf(i)
		last, width := len(x.shape)-1, x.Last()
		if n < 1 || width < n {
			return nil
		}
		whole := width / n * n
		part := e.softmax(e.Slice(x, last, 0, whole))
		if whole < width {
			part = e.Cat(last, part, e.Mul("", e.Slice(x, last, whole, width), e.Literal(0)))
		}
		e.Pass(i, part)
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

// TakenOff are the means that are taken off what they are the mean of, where squares of that are summed: those of a LayerNorm.
func (p *Program) TakenOff() []int {
	var all []int
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Prim != Sum {
			continue
		}
		sq := &p.Steps[s.Args[0].step]
		if sq.Prim != Mul || !sameView(sq.Args[0], sq.Args[1]) || p.Steps[sq.Args[0].step].Prim != Sub {
			continue
		}
		mean := p.Steps[sq.Args[0].step].Args[1].step
		if _, ok := p.count(mean); ok && !slices.Contains(all, mean) {
			all = append(all, mean)
		}
	}
	return all
}

// MeanKept takes no mean off, for all steps that read it.
func (p *Program) MeanKept() *Edited {
	e := p.Edit()
	all := p.TakenOff()
	for _, i := range all {
		e.Pass(i, e.Mul("", e.Move(i), e.Literal(0)))
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

// Turning are the vectors of constants from which cosines and sines are computed: the inverse frequencies of a rotary embedding. Other
// constants of a program, such as a mask or indexes, are none, and positions that follow each other.
func (p *Program) Turning() []int {
	from := make([]bool, len(p.Steps))
	var all []int
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := &p.Steps[i]
		if s.Prim == Vector && from[i] && len(s.Values) > 0 && !counts(s.Values) {
			all = append(all, i)
		}
		if from[i] || s.Prim == Cos || s.Prim == Sin {
			for _, a := range s.Args {
				from[a.step] = true
			}
		}
	}
	slices.Reverse(all)
	return all
}

// counts reports whether numbers are whole and follow each other.
func counts(v []float64) bool {
	for k, x := range v {
		if x != math.Trunc(x) || x != v[0]+float64(k) {
			return false
		}
	}
	return len(v) > 1
}

// slackOfPowers is what a frequency may be off by, relatively: a power, a reciprocal, and the scaling.
const slackOfPowers = (functions.PowerOfBase + 2) * unit32

// Frequencies gives all vectors of constants that cosines and sines are computed from other values, each to two units of float32.
func (p *Program) Frequencies(change func([]float64) []float64) *Edited {
	e := p.Edit()
	all := p.Turning()
	for _, i := range all {
		v := change(slices.Clone(p.Steps[i].Values))
		if v == nil {
			return nil
		}
		x := Value{Shape: p.Steps[i].Shape, Data: v, Bound: make([]float64, len(v))}
		for j := range v {
			x.Bound[j] = slackOfPowers * math.Abs(v[j])
		}
		w := e.Other(x)
		for k := range p.Steps {
			for a, old := range p.Steps[k].Args {
				if old.step == i {
					e.Read(k, a, Var{w.step, old.off, old.shape, old.stride})
				}
			}
		}
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
