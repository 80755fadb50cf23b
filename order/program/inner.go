package program

import "slices"

// Inner is a program of some steps of another program, such as the steps of one operation. The results that the steps read are its inputs and weights. [Editor.Put] puts an edited
// inner program back, so that no other step changes.
type Inner struct {
	*Program
	in, w []Var // of the whole program, by the number of the input and of the weight
	out   Var   // of the whole program: what others read of the steps
	at    []int // by step: the step of the whole program, −1 for inputs
	apart bool  // the result is rounded in a step of its own
}

// Inner makes the program of the steps from one up to another. The steps read the variables in and the weights w, and their result is out. A step behind them may round the result. Ok
// is false if the steps read anything else.
func (p *Program) Inner(from, to int, in, w []Var, out Var) (x *Inner, ok bool) {
	b := innerBuilder{p: p, in: in, w: w, now: map[int]int{}}
	for k, v := range in {
		b.add(Step{Prim: Input, Index: k, Shape: v.shape}, -1)
	}
	for k, v := range w {
		s := p.Steps[v.step]
		s.Index = k
		b.now[v.step] = b.add(s, v.step)
	}
	for i := from; i < to; i++ {
		if !b.step(i) {
			return nil, false
		}
	}
	result, apart := out, out.step >= to
	if apart {
		result = p.Steps[out.step].Args[0]
	}
	if result, ok = b.here(result); !ok {
		return nil, false
	}
	d, err := (&Program{Steps: b.steps, Out: result}).Edit().End()
	if err != nil {
		return nil, false
	}
	x = &Inner{in: in, w: w, out: out, apart: apart}
	for _, from := range d.from {
		x.at = append(x.at, b.at[from])
	}
	x.Program, _ = d.Whole(Call{})
	return x, true
}

// innerBuilder makes an Inner.
type innerBuilder struct {
	p     *Program
	in, w []Var
	steps []Step
	at    []int       // by step: that of the whole program
	now   map[int]int // by step of the whole program
}

func (b *innerBuilder) add(s Step, at int) int {
	b.steps, b.at = append(b.steps, s), append(b.at, at)
	return len(b.steps) - 1
}

// step adds a step of the whole program. It reports false if an operand is missing.
func (b *innerBuilder) step(i int) (ok bool) {
	s := b.p.Steps[i]
	if s.Prim.weight() { // that is read whole
		s.Index = slices.IndexFunc(b.w, func(v Var) bool { return b.p.Steps[v.step].Index == s.Index })
		b.now[i] = b.add(s, i)
		return s.Index >= 0
	}
	s.Args = slices.Clone(s.Args)
	for k, a := range s.Args {
		if s.Args[k], ok = b.here(a); !ok {
			return false
		}
	}
	b.now[i] = b.add(s, i)
	return s.Prim != Input
}

// here is a variable of the whole program as one of the inner program.
func (b *innerBuilder) here(v Var) (Var, bool) {
	if n, ok := b.now[v.step]; ok {
		v.step = n
		return v, true
	}
	for k, o := range b.in {
		if o.step == v.step && o.plain() && v.off >= o.off && v.off-o.off < max(size(o.shape), 1) {
			v.step, v.off = k, v.off-o.off
			return v, true
		}
	}
	if s := b.p.Steps[v.step]; s.Prim == Number || s.Prim == Vector {
		n := b.add(s, v.step)
		b.now[v.step], v.step = n, n
		return v, true
	}
	return v, false
}

// Put replaces the steps of an inner program by an edited version. It reports false if the result has a wrong number of elements.
func (e *Editor) Put(x *Inner, d *Edited) bool {
	if size(d.Out.shape) != size(x.out.shape) {
		return false
	}
	last := sameView(x.out, e.p.Out)
	all := make([]Var, len(d.Steps)) // by step: the result in the program that is edited
	there := func(a Var) Var {
		of := all[a.step]
		a.step, a.off = of.step, a.off+of.off
		return a
	}
	for i, s := range d.Steps {
		from := d.from[i]
		switch {
		case s.Prim == Input && s.Index >= 0:
			if all[i] = x.in[s.Index]; !all[i].plain() {
				all[i] = e.Held(all[i])
			}
		case s.Prim == Input:
			all[i] = e.Other(d.in[-s.Index-1])
		case from >= 0 && x.at[from] == x.out.step && !last: // it becomes what the edit makes of it
			all[i] = e.Move(x.out.step)
		case from >= 0:
			all[i] = Var{step: x.at[from]}
		default:
			s.Args = slices.Clone(s.Args)
			for k, a := range s.Args {
				s.Args[k] = there(a)
			}
			if s.Prim.weight() && s.Index < 0 {
				e.w = append(e.w, d.w[-s.Index-1])
				s.Index = -len(e.w)
			} else if s.Prim.weight() {
				s.Index = e.p.Steps[x.w[s.Index].step].Index
			}
			e.steps = append(e.steps, s)
			all[i] = Var{step: len(e.steps) - 1}
		}
	}
	v, to := there(d.Out), x.out.step
	own := v
	own.step = to
	switch {
	case last:
		e.Return(e.shaped(v, x.out.shape))
	case !x.apart && v.step >= len(e.p.Steps) && sameView(own, x.out) && slices.Equal(e.steps[v.step].Shape, e.steps[to].Shape):
		e.steps[to], e.changed[to] = e.steps[v.step], true
	default:
		e.Pass(to, e.shaped(v, e.p.Steps[to].Shape))
	}
	return e.err == nil
}

// shaped is a variable in a shape of as many elements, row by row.
func (e *Editor) shaped(v Var, shape []int) Var {
	if slices.Equal(v.shape, shape) {
		return v
	}
	return e.Reshape(e.Held(v), shape...)
}

// Given is the value of a variable that is an input of the program, or an index of the first axis of an input. Ok is false for the result of a step.
func (p *Program) Given(v Var, c Call) (x Value, ok bool) {
	s := &p.Steps[v.step]
	if s.Prim != Input || s.Index < 0 || s.Index >= len(c.In) || !v.plain() || v.off+size(v.shape) > len(c.In[s.Index].Data) {
		return x, false
	}
	x = Value{Shape: v.shape, Data: c.In[s.Index].Data[v.off:][:size(v.shape)]}
	if b := c.In[s.Index].Bound; b != nil {
		x.Bound = b[v.off:][:size(v.shape)]
	}
	return x, true
}
