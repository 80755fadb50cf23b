package edit

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// Editor changes a copy of a program. The builder's methods add steps. Existing steps can be turned into other steps,
// read other operands, or be moved: then the readers of a moved step read its replacement.
type Editor struct {
	*program.Builder
	Before  *program.Program
	changed []bool
	out     program.Var
	in      []program.Value
	w       []program.Rows

	inserted int // the first step of the variant that was inserted last
}

// NewEditor starts an edit.
func NewEditor(p *program.Program) *Editor {
	return &Editor{Builder: p.Builder(), Before: p, changed: make([]bool, len(p.Steps)), out: p.Out}
}

// Become turns a step into the primitive prim of the operands args. Operands of a primitive that computes by element
// are expanded to the step's shape. The rounding of the step stays.
func (e *Editor) Become(step int, prim program.Prim, args ...program.Var) {
	if e.Err() != nil {
		return
	}
	s := &e.Steps[step]
	s.Prim, s.Args = prim, slices.Clone(args)
	if s.Is(program.ByNumber) {
		s.Payload = nil
	}
	if prim.ByElement() {
		for k, a := range s.Args {
			s.Args[k] = a.Expanded(s.Shape)
		}
	}
	e.changed[step] = true
}

// Pass makes a step hand an operand on, as it rounds its result.
func (e *Editor) Pass(step int, v program.Var) {
	e.Become(step, program.Round, v)
}

// Read makes a step read another operand, expanded to the shape of the operand before.
func (e *Editor) Read(step, arg int, v program.Var) {
	if e.Err() != nil {
		return
	}
	s := &e.Steps[step]
	s.Args = slices.Clone(s.Args)
	if s.Prim != program.Dot {
		v = v.Expanded(s.Args[arg].Shape)
	}
	v.Stride = slices.Clone(v.Stride)
	for a, n := range v.Shape {
		if n == 1 { // a sum of products may go along it
			v.Stride[a] = 0
		}
	}
	s.Args[arg] = v
	e.changed[step] = true
}

// SetNumber changes a number.
func (e *Editor) SetNumber(step int, x float64) {
	n := e.Steps[step].Number()
	n.Value = x
	e.Steps[step].Payload = n
	e.changed[step] = true
}

// SetVector makes constants others.
func (e *Editor) SetVector(step int, x []float64) {
	e.Steps[step].Payload = program.Values(x)
	e.changed[step] = true
}

// Move computes a step in another place and returns its result; the step itself is to be made something else.
func (e *Editor) Move(step int) program.Var {
	e.Steps = append(e.Steps, e.Steps[step])
	v := e.Before.Result(step)
	v.Step = len(e.Steps) - 1
	return v
}

// MoveWith is Move with other operands of the same shapes.
func (e *Editor) MoveWith(step int, args ...program.Var) program.Var {
	v := e.Move(step)
	for k := range args {
		args[k].Stride = slices.Clone(args[k].Stride)
		for a, n := range args[k].Shape {
			if n == 1 { // a sum of products may go along it
				args[k].Stride[a] = 0
			}
		}
	}
	e.Steps[v.Step].Args = args
	return v
}

// Other is an input that the call does not have.
func (e *Editor) Other(v program.Value) program.Var {
	e.in = append(e.in, v)
	return e.Append(program.Step{Prim: program.Input, Payload: program.Leaf(-len(e.in)), Shape: v.Shape})
}

// OtherInput gives an input the value v of the same shape.
func (e *Editor) OtherInput(step int, v program.Value) {
	e.in = append(e.in, v)
	e.Steps[step].Payload = program.Leaf(-len(e.in))
	e.changed[step] = true
}

// Exchange swaps two inputs of one shape. It returns false, and changes nothing, if the shapes differ.
func (e *Editor) Exchange(one, other int) bool {
	a, b := &e.Steps[one], &e.Steps[other]
	if !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	a.Payload, b.Payload = b.Payload, a.Payload
	e.changed[one], e.changed[other] = true, true
	return true
}

// OtherWeight replaces a weight by the weight w of the same shape.
func (e *Editor) OtherWeight(step int, w program.Rows) {
	e.w = append(e.w, w)
	e.Steps[step].Payload = program.Leaf(-len(e.w))
	e.changed[step] = true
}

// Step is a step as it is now, to be changed.
func (e *Editor) Step(step int) *program.Step {
	e.changed[step] = true
	return &e.Steps[step]
}

// Return makes the variable v, of the result's shape, the result of the program.
func (e *Editor) Return(v program.Var) { e.out = v }

// End ends an edit: steps that nothing reads are gone.
func (e *Editor) End() (*program.Edited, error) {
	if e.Err() != nil {
		return nil, e.Err()
	}
	return program.NewEdited(e.Steps, e.changed, e.out, e.in, e.w)
}

// Insert adds the steps of an operation on a variable.
func (e *Editor) Insert(o program.Op, in ...program.Var) program.Var {
	form := e.Form
	e.Form = o.Kind()
	out := e.Formula(o, in, nil)
	e.Form = form
	return out
}

// RoundAll rounds every step that was added to the model's dtype.
func (e *Editor) RoundAll() {
	for i := len(e.Before.Steps); i < len(e.Steps); i++ {
		if s := &e.Steps[i]; s.Prim.Computes() && s.Round == program.Plain {
			s.Round = program.Model
		}
	}
}

// held copies a variable into a step of its own, in the shape of the view.
func (e *Editor) held(v program.Var) program.Var { return e.Cat(0, v) }

// Rounded returns a variable rounded to the model's dtype. Other readers keep the unrounded variable.
func (e *Editor) Rounded(v program.Var) program.Var {
	return e.Append(program.Step{Prim: program.Round, Name: "round", Args: []program.Var{v}, Shape: v.Shape, Round: program.Model})
}

// Only ends an edit with the variable v as the whole result of the program.
func (e *Editor) Only(v program.Var) (*program.Edited, error) {
	e.out = v
	return e.End()
}

// OtherRows is a weight that the call does not have.
func (e *Editor) OtherRows(w program.Rows) program.Var {
	e.w = append(e.w, w)
	rows, cols := w.Size()
	s := program.Step{Prim: program.Matrix, Payload: program.Leaf(-len(e.w)), Shape: []int{rows, cols}}
	if rows == 1 {
		s.Prim, s.Shape = program.Weight, []int{cols}
	}
	return e.Append(s)
}
