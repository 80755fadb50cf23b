package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// Inner is a program of some steps of a larger program, for example of the steps of an operation. Results that the
// steps read from outside become inputs and weights. [Editor.Put] puts an edited inner program back, and leaves the
// other steps unchanged.
type Inner struct {
	*program.Program
	in, w []program.Var // of the whole program, by the number of the input and of the weight
	out   program.Var   // of the whole program: what others read of the steps
	at    []int         // by step: the step of the whole program, −1 for inputs
	apart bool          // the result is rounded in a step of its own
}

// InnerOf makes the program of the steps [from, to) of p. The steps read the variables in and the weights w, and
// their result is out. A step after them may round the result. ok is false if the steps read anything else.
func InnerOf(p *program.Program, from, to int, in, w []program.Var, out program.Var) (x *Inner, ok bool) {
	b := innerBuilder{p: p, in: in, w: w, now: map[int]int{}}
	for k, v := range in {
		b.add(program.Step{Prim: program.Input, Payload: program.Leaf(k), Shape: v.Shape}, -1)
	}
	for k, v := range w {
		s := p.Steps[v.Step]
		s.Payload = program.Leaf(k)
		b.now[v.Step] = b.add(s, v.Step)
	}
	for i := from; i < to; i++ {
		if !b.step(i) {
			return nil, false
		}
	}
	result, apart := out, out.Step >= to
	if apart {
		result = p.Steps[out.Step].Args[0]
	}
	if result, ok = b.here(result); !ok {
		return nil, false
	}
	d, err := NewEditor(&program.Program{Steps: b.steps, Out: result}).End()
	if err != nil {
		return nil, false
	}
	x = &Inner{in: in, w: w, out: out, apart: apart}
	for _, from := range d.From {
		x.at = append(x.at, b.at[from])
	}
	x.Program, _ = d.Whole(program.Call{})
	return x, true
}

// innerBuilder makes an Inner.
type innerBuilder struct {
	p     *program.Program
	in, w []program.Var
	steps []program.Step
	at    []int       // by step: that of the whole program
	now   map[int]int // by step of the whole program
}

func (b *innerBuilder) add(s program.Step, at int) int {
	b.steps, b.at = append(b.steps, s), append(b.at, at)
	return len(b.steps) - 1
}

// step adds a step of the whole program. It reports false if an operand is missing.
func (b *innerBuilder) step(i int) (ok bool) {
	s := b.p.Steps[i]
	if s.Prim.IsWeight() { // that is read whole
		k := slices.IndexFunc(b.w, func(v program.Var) bool { return b.p.Steps[v.Step].Index() == s.Index() })
		s.Payload = program.Leaf(k)
		b.now[i] = b.add(s, i)
		return k >= 0
	}
	s.Args = slices.Clone(s.Args)
	for k, a := range s.Args {
		if s.Args[k], ok = b.here(a); !ok {
			return false
		}
	}
	b.now[i] = b.add(s, i)
	return s.Prim != program.Input
}

// here is a variable of the whole program as one of the inner program.
func (b *innerBuilder) here(v program.Var) (program.Var, bool) {
	if n, ok := b.now[v.Step]; ok {
		v.Step = n
		return v, true
	}
	for k, o := range b.in {
		if o.Step == v.Step && o.Plain() && v.Off >= o.Off && v.Off-o.Off < max(program.Size(o.Shape), 1) {
			v.Step, v.Off = k, v.Off-o.Off
			return v, true
		}
	}
	if s := b.p.Steps[v.Step]; s.Prim == program.Number || s.Prim == program.Vector {
		n := b.add(s, v.Step)
		b.now[v.Step], v.Step = n, n
		return v, true
	}
	return v, false
}

// Put replaces the steps of an inner program by an edited version. It reports false if the result has a wrong number of elements.
func Put(e *Editor, x *Inner, d *program.Edited) bool {
	if program.Size(d.Out.Shape) != program.Size(x.out.Shape) {
		return false
	}
	last := x.out.Same(e.Before.Out)
	all := make([]program.Var, len(d.Steps)) // by step: the result in the program that is edited
	there := func(a program.Var) program.Var {
		of := all[a.Step]
		a.Step, a.Off = of.Step, a.Off+of.Off
		return a
	}
	for i, s := range d.Steps {
		from := d.From[i]
		switch {
		case s.Prim == program.Input && s.Index() >= 0:
			if all[i] = x.in[s.Index()]; !all[i].Plain() {
				all[i] = e.held(all[i])
			}
		case s.Prim == program.Input:
			all[i] = e.Other(d.In[-s.Index()-1])
		case from >= 0 && x.at[from] == x.out.Step && !last: // it becomes what the edit makes of it
			all[i] = e.Move(x.out.Step)
		case from >= 0:
			all[i] = program.Var{Step: x.at[from]}
		default:
			s.Args = slices.Clone(s.Args)
			for k, a := range s.Args {
				s.Args[k] = there(a)
			}
			if s.Prim.IsWeight() && s.Index() < 0 {
				e.w = append(e.w, d.W[-s.Index()-1])
				s.Payload = program.Leaf(-len(e.w))
			} else if s.Prim.IsWeight() {
				s.Payload = e.Before.Steps[x.w[s.Index()].Step].Payload
			}
			e.Steps = append(e.Steps, s)
			all[i] = program.Var{Step: len(e.Steps) - 1}
		}
	}
	v, to := there(d.Out), x.out.Step
	own := v
	own.Step = to
	switch {
	case last:
		e.Return(shaped(e, v, x.out.Shape))
	case !x.apart && v.Step >= len(e.Before.Steps) && own.Same(x.out) && slices.Equal(e.Steps[v.Step].Shape, e.Steps[to].Shape):
		e.Steps[to], e.changed[to] = e.Steps[v.Step], true
	default:
		e.Pass(to, shaped(e, v, e.Before.Steps[to].Shape))
	}
	return e.Err() == nil
}

// shaped is a variable in a shape of as many elements, row by row.
func shaped(e *Editor, v program.Var, shape []int) program.Var {
	if slices.Equal(v.Shape, shape) {
		return v
	}
	return e.Reshape(e.held(v), shape...)
}

// Given is the value of a variable that is an input of the program, or an index of the first axis of an input. Ok is false for the result of a step.
func Given(p *program.Program, v program.Var, c program.Call) (x program.Value, ok bool) {
	s := &p.Steps[v.Step]
	if s.Prim != program.Input || s.Index() < 0 || s.Index() >= len(c.In) || !v.Plain() || v.Off+program.Size(v.Shape) > len(c.In[s.Index()].Data) {
		return x, false
	}
	x = program.Value{Shape: v.Shape, Data: c.In[s.Index()].Data[v.Off:][:program.Size(v.Shape)]}
	if b := c.In[s.Index()].Bound; b != nil {
		x.Bound = b[v.Off:][:program.Size(v.Shape)]
	}
	return x, true
}
