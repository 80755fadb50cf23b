package program

import (
	"errors"
	"slices"
)

// Editor changes a copy of a program. The builder's methods add steps to it; steps that are there can be made others, read
// others, or be moved, so that what read them reads what is put in their place.
type Editor struct {
	*Builder
	p       *Program
	changed []bool
	out     Var
	in      []Value
	w       []Rows

	inserted int // the first step of the variant that was inserted last
}

// Edit starts an edit.
func (p *Program) Edit() *Editor {
	b := &Builder{steps: slices.Clone(p.Steps), names: map[string]int{}, Shape: p.Out.shape}
	return &Editor{Builder: b, p: p, changed: make([]bool, len(p.Steps)), out: p.Out}
}

// Result is the whole result of a step.
func (p *Program) Result(step int) Var {
	shape := p.Steps[step].Shape
	return Var{step: step, shape: shape, stride: contiguous(shape)}
}

// Become makes a step a primitive of other operands, which have its shape where it computes by element. How it rounds stays.
func (e *Editor) Become(step int, prim Prim, args ...Var) {
	if e.err != nil {
		return
	}
	s := &e.steps[step]
	s.Prim, s.Args = prim, slices.Clone(args)
	if s.byNumber = false; prim.byElement() {
		for k, a := range s.Args {
			s.Args[k] = a.to(s.Shape)
		}
	}
	e.changed[step] = true
}

// Pass makes a step hand an operand on, as it rounds its result.
func (e *Editor) Pass(step int, v Var) {
	e.Become(step, Round, v)
	e.steps[step].Fallback = false
}

// Read makes a step read another operand, of the shape of the one that it had.
func (e *Editor) Read(step, arg int, v Var) {
	if e.err != nil {
		return
	}
	s := &e.steps[step]
	s.Args = slices.Clone(s.Args)
	if s.Prim != Dot {
		v = v.to(s.Args[arg].shape)
	}
	v.stride = slices.Clone(v.stride)
	for a, n := range v.shape {
		if n == 1 { // a sum of products may go along it
			v.stride[a] = 0
		}
	}
	s.Args[arg] = v
	e.changed[step] = true
}

// SetNumber makes a number another one.
func (e *Editor) SetNumber(step int, x float64) {
	e.steps[step].Value = x
	e.changed[step] = true
}

// SetVector makes constants others.
func (e *Editor) SetVector(step int, x []float64) {
	e.steps[step].Values = x
	e.changed[step] = true
}

// Move computes a step in another place and returns its result; the step itself is to be made something else.
func (e *Editor) Move(step int) Var {
	e.steps = append(e.steps, e.steps[step])
	v := e.p.Result(step)
	v.step = len(e.steps) - 1
	return v
}

// MoveWith is Move with other operands of the same shapes.
func (e *Editor) MoveWith(step int, args ...Var) Var {
	v := e.Move(step)
	for k := range args {
		args[k].stride = slices.Clone(args[k].stride)
		for a, n := range args[k].shape {
			if n == 1 { // a sum of products may go along it
				args[k].stride[a] = 0
			}
		}
	}
	e.steps[v.step].Args = args
	return v
}

// Other is an input that the call does not have.
func (e *Editor) Other(v Value) Var {
	e.in = append(e.in, v)
	return e.add(Step{Prim: Input, Index: -len(e.in), Shape: v.Shape})
}

// OtherInput makes an input another one of its shape.
func (e *Editor) OtherInput(step int, v Value) {
	e.in = append(e.in, v)
	e.steps[step].Index = -len(e.in)
	e.changed[step] = true
}

// Exchange makes two inputs of one shape each the other; it reports whether they are.
func (e *Editor) Exchange(one, other int) bool {
	a, b := &e.steps[one], &e.steps[other]
	if !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	a.Index, b.Index = b.Index, a.Index
	e.changed[one], e.changed[other] = true, true
	return true
}

// OtherWeight makes a weight another one of its shape.
func (e *Editor) OtherWeight(step int, w Rows) {
	e.w = append(e.w, w)
	e.steps[step].Index = -len(e.w)
	e.changed[step] = true
}

// Step is a step as it is now, to be changed.
func (e *Editor) Step(step int) *Step {
	e.changed[step] = true
	return &e.steps[step]
}

// Return makes the program's result another one, of its shape.
func (e *Editor) Return(v Var) { e.out = v }

// Edited is a program that computes something else in some places.
type Edited struct {
	*Program
	from []int // by step: the one of the program before with the same result; −1 for what is computed anew
	in   []Value
	w    []Rows
}

var errCycle = errors.New("a step would be computed from its own result")

// End ends an edit: steps that nothing reads are gone.
func (e *Editor) End() (*Edited, error) {
	if e.err != nil {
		return nil, e.err
	}
	d := &Edited{Program: &Program{}, in: e.in, w: e.w}
	at := make([]int, len(e.steps)) // of the new program, plus 1; −1 while it is visited
	var visit func(i int) error
	visit = func(i int) error {
		switch at[i] {
		case 0:
		case -1:
			return errCycle
		default:
			return nil
		}
		at[i] = -1
		s := e.steps[i]
		clean := i < len(e.changed) && !e.changed[i]
		args := make([]Var, len(s.Args))
		for k, a := range s.Args {
			if err := visit(a.step); err != nil {
				return err
			}
			args[k] = a
			args[k].step = at[a.step] - 1
			clean = clean && d.from[args[k].step] >= 0
		}
		s.Args, s.readers, s.final = args, 0, false
		from := -1
		if clean {
			from = i
		}
		d.Steps, d.from = append(d.Steps, s), append(d.from, from)
		at[i] = len(d.Steps)
		return nil
	}
	if err := visit(e.out.step); err != nil {
		return nil, err
	}
	d.Out = e.out
	d.Out.step = at[e.out.step] - 1
	for i := range d.Steps {
		for _, a := range d.Steps[i].Args {
			d.Steps[a.step].readers++
		}
		if s := &d.Steps[i]; (s.Prim == Input || s.Prim.weight()) && s.Index < 0 {
			d.from[i] = -1
		}
	}
	d.bounds()
	return d, nil
}

// Whole is the program with what it reads beside a call's, for one evaluation of all of it.
func (d *Edited) Whole(c Call) (*Program, Call) {
	p := &Program{Steps: slices.Clone(d.Steps), Out: d.Out, floors: d.floors}
	c = d.call(c)
	d.indexes(p, len(c.In), len(c.W))
	p.schedule()
	return p, c
}

// call is a call with what the program reads beside it, the last first.
func (d *Edited) call(c Call) Call {
	c.In, c.W = slices.Clone(c.In), slices.Clone(c.W)
	for k := len(d.in) - 1; k >= 0; k-- {
		c.In = append(c.In, d.in[k])
	}
	for k := len(d.w) - 1; k >= 0; k-- {
		c.W = append(c.W, d.w[k])
	}
	return c
}

// indexes gives leaves that are beside a call their places in it.
func (d *Edited) indexes(p *Program, in, w int) {
	for i := range p.Steps {
		s := &p.Steps[i]
		switch {
		case s.Index >= 0:
		case s.Prim == Input:
			s.Index += in
		case s.Prim.weight():
			s.Index += w
		}
	}
}

// Insert adds the steps of an operation on a variable.
func (e *Editor) Insert(o Op, in ...Var) Var {
	form := e.form
	e.form = o.Kind()
	out := e.stepsOf(o, in, nil)
	e.form = form
	return out
}

// RoundAll rounds every step that was added to the model's dtype.
func (e *Editor) RoundAll() {
	for i := len(e.p.Steps); i < len(e.steps); i++ {
		if s := &e.steps[i]; s.Prim.Computes() && s.Round == Plain {
			s.Round = Model
		}
	}
}

// Held is a variable as a step of its own, of the shape that it is seen in.
func (e *Editor) Held(v Var) Var { return e.Cat(0, v) }

// Rounded is a variable rounded to the model's dtype, which stays as it is for others.
func (e *Editor) Rounded(v Var) Var {
	return e.add(Step{Prim: Round, Name: "round", Args: []Var{v}, Shape: v.shape, Round: Model})
}

// Only ends the edit of a program that is a variable of it alone.
func (e *Editor) Only(v Var) (*Edited, error) {
	e.out = v
	return e.End()
}

// Err is the first error of what was added.
func (e *Editor) Err() error { return e.err }

// As is a variable in a shape of as many elements, its axes in another order or read row by row; ok is false where it has none.
func (e *Editor) As(v Var, shape []int) (Var, bool) { return v.as(shape) }

// OtherRows is a weight that the call does not have.
func (e *Editor) OtherRows(w Rows) Var {
	e.w = append(e.w, w)
	rows, cols := w.Size()
	s := Step{Prim: Matrix, Index: -len(e.w), Shape: []int{rows, cols}}
	if rows == 1 {
		s.Prim, s.Shape = Weight, []int{cols}
	}
	return e.add(s)
}
