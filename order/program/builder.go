package program

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/tracediff/tracediff/order/program/functions"
)

// Builder collects the steps of a program. It has a method for each primitive and each view, the words that formulas are written in: that is why they are many.
// The first error, as of shapes that do not go together, sticks and is [Builder.Program]'s.
type Builder struct {
	// Shape is that of the result of the operation whose steps are being added.
	Shape []int
	// Rewrites are the formulas in another order that are built in place of the reference's.
	Rewrites Rewrite
	// Part is the number of the operation whose steps are being added, from 1, in a program of several operations.
	Part int

	// Form names, in a program of several operations, the form of the operation whose steps are being added.
	// Operations of one form round alike.
	Form string

	Steps []Step // that were added so far
	names map[string]int
	err   error
}

// Len is how many steps there are.
func (b *Builder) Len() int { return len(b.Steps) }

// NewBuilder starts a program.
func NewBuilder() *Builder { return &Builder{names: map[string]int{}} }

// Builder has the steps of the program, to which others can be added.
func (p *Program) Builder() *Builder {
	return &Builder{Steps: slices.Clone(p.Steps), names: map[string]int{}, Shape: p.Out.Shape}
}

// Err is the first error of what was added.
func (b *Builder) Err() error { return b.err }

// Apply adds the steps of an operation whose result has a shape. Form is what operations that are to be rounded alike have
// in common.
func (b *Builder) Apply(o Op, form string, shape []int, in, w []Var) Var {
	b.Shape, b.Form = shape, form
	if len(shape) == 0 {
		return b.Fail("a result without axes")
	}
	if out := b.Formula(o, in, w); b.err == nil {
		return b.Reshape(out, shape...)
	}
	return Var{Shape: shape, Stride: Contiguous(shape)}
}

// Formula adds the steps of an operation, which read inputs and weights. A formula takes the inputs, weights and axes that it needs: where there are fewer, it
// indexes past the end, and that is an error of the program like shapes that do not go together.
func (b *Builder) Formula(o Op, in, w []Var) (out Var) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case runtime.Error:
			out = b.Fail("%d inputs and %d weights, or their axes, are too few: %w", len(in), len(w), e)
		default:
			panic(e)
		}
	}()
	return o.Steps(b, in, w)
}

// Program ends a program whose result is out.
func (b *Builder) Program(out Var) (*Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.Steps[out.Step].Prim == Matrix {
		return nil, errors.New("the result is a matrix, which is read row by row")
	}
	p := &Program{}
	p.Steps, p.Out = trim(b.Steps, out)
	p.schedule()
	p.bounds()
	return p, nil
}

// Fail makes the program an error; the first one stays.
func (b *Builder) Fail(format string, args ...any) Var {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
	return Var{Shape: []int{1}, Stride: []int{1}}
}

// Input is an input of the program.
func (b *Builder) Input(k int, shape []int) Var {
	return b.Append(Step{Prim: Input, Payload: Leaf(k), Shape: shape})
}

// Weight is a weight: a vector where it has one row.
func (b *Builder) Weight(k int, size [2]int) Var {
	if size[0] == 1 {
		return b.Append(Step{Prim: Weight, Payload: Leaf(k), Shape: size[1:]})
	}
	return b.Append(Step{Prim: Matrix, Payload: Leaf(k), Shape: size[:]})
}

// Whole reads a whole weight as a tensor: for a gain that is a matrix, or for a product over other parts of the
// weight than its rows.
func (b *Builder) Whole(w Var) Var {
	if b.err != nil || b.Steps[w.Step].Prim != Matrix {
		return w
	}
	if !b.streamed(w) {
		return b.Fail("a part of a matrix, which is read row by row")
	}
	return b.Append(Step{Prim: Dense, Payload: b.Steps[w.Step].Payload, Shape: w.Shape})
}

// Append adds a step and returns its result.
func (b *Builder) Append(s Step) Var {
	if b.err != nil {
		return Var{Shape: s.Shape, Stride: Contiguous(s.Shape)}
	}
	s.Part = b.Part
	if s.Form = b.Form; s.Name != "" {
		s.Site = s.Name
		key := b.Form + "/" + s.Name
		if b.names[key]++; b.names[key] > 1 {
			s.Name = fmt.Sprintf("%s#%d", s.Name, b.names[key])
		}
	}
	if len(s.Shape) == 0 || slices.ContainsFunc(s.Args, func(a Var) bool { return len(a.Shape) == 0 }) {
		return b.Fail("%s of something without axes", s.Prim)
	}
	if slices.ContainsFunc(s.Shape, func(n int) bool { return n < 0 }) {
		return b.Fail("%s of shape %v", s.Prim, s.Shape)
	}
	for k, a := range s.Args {
		if b.Steps[a.Step].Prim == Matrix && (k != 1 || s.Prim != Affine && s.Prim != Lookup) {
			return b.Fail("%s of a matrix, which is read row by row", s.Prim)
		}
	}
	for _, a := range s.Args {
		b.Steps[a.Step].readers++
	}
	b.Steps = append(b.Steps, s)
	return Var{Step: len(b.Steps) - 1, Shape: s.Shape, Stride: Contiguous(s.Shape)}
}

// Literal is a number of the formula that every dtype represents exactly, such as 1 or 0.5: no place to round.
func (b *Builder) Literal(x float64) Var {
	return b.Append(Step{Prim: Number, Payload: Constant{Value: x, Fixed: true}, Shape: []int{1}, Round: None})
}

// Scalar is a number that takes part as a float32, like a Python number in torch.
func (b *Builder) Scalar(name string, x float64) Var {
	return b.Append(Step{Prim: Number, Name: name, Payload: Constant{Value: x}, Shape: []int{1}})
}

// Reciprocal is 1/x, a constant of the formula that takes part as a float32, and by whose inverse x some engines divide.
func (b *Builder) Reciprocal(name string, x float64) Var {
	return b.Append(Step{Prim: Number, Name: name, Payload: Constant{Value: 1 / x, Inverse: true}, Shape: []int{1}})
}

// Tensor is a number that was made a tensor of the model's dtype.
func (b *Builder) Tensor(name string, x float64) Var {
	return b.Append(Step{Prim: Number, Name: name, Payload: Constant{Value: x}, Shape: []int{1}, Round: Model})
}

// Computed is a constant that a function of a library gives, which may be off by the units of one; cast says that it was made a
// tensor of the model's dtype.
func (b *Builder) Computed(name string, x float64, cast bool) Var {
	s := Step{Prim: Number, Name: name, Payload: Constant{Value: x, Units: functions.Quantile}, Shape: []int{1}}
	if cast {
		s.Round = Model
	}
	return b.Append(s)
}

// Given is a number that the model stores as a tensor of its dtype. The rounding to this dtype is no choice of an
// engine, and no site.
func (b *Builder) Given(name string, x float64) Var {
	return b.Append(Step{Prim: Number, Name: name, Payload: Constant{Value: x, Fixed: true}, Shape: []int{1}, Round: Model})
}

// Vector are constants; see [Angle] for what they are used for.
func (b *Builder) Vector(name string, x []float64) Var {
	return b.Append(Step{Prim: Vector, Name: name, Payload: Values(x), Shape: []int{len(x)}})
}

// Constant are constants of any shape, row-major.
func (b *Builder) Constant(name string, x []float64, shape []int) Var {
	if Size(shape) != len(x) {
		return b.Fail("%s: %d numbers of shape %v", name, len(x), shape)
	}
	return b.Append(Step{Prim: Vector, Name: name, Payload: Values(x), Shape: shape})
}

// R is a rounding point of the reference: the result is rounded to the model's dtype before it is used.
func (b *Builder) R(x Var) Var { return b.round(x, Model) }

// Unrounded is a result that the reference does not even round to float32.
func (b *Builder) Unrounded(x Var) Var { return b.round(x, Welford) }

// RoundTo is a rounding point of a kind that a dtype has.
func (b *Builder) RoundTo(x Var, r Rounding) Var { return b.round(x, r) }

func (b *Builder) round(x Var, to Rounding) Var {
	if b.err != nil {
		return x
	}
	s := &b.Steps[x.Step]
	whole := x.Off == 0 && Size(x.Shape) == Size(s.Shape) && x.Plain()
	if s.Prim.Computes() && s.Prim != Solve && s.Round == Plain && s.readers == 0 && whole { // the rows of a solution are rounded when all are there
		s.Round = to
		return x
	}
	return b.Append(Step{Prim: Round, Name: "round", Args: []Var{x}, Shape: x.Shape, Round: to})
}

// Site is a place where an engine may round an input: the reference does not.
func (b *Builder) Site(name string, x Var) Var {
	return b.Append(Step{Prim: Copy, Name: name, Args: []Var{x}, Shape: x.Shape})
}

// Choose is x where c is not 0, and y elsewhere; c has no bound. The three are broadcast as numpy does.
func (b *Builder) Choose(c, x, y Var) Var { return b.element(Choose, "", c, x, y) }

// Gather takes elements of x along an axis: element [… i …] is x[… index[… i …] …]. The index has the result's shape, and x has
// it but for that axis; an index outside of it is an error of the evaluation.
func (b *Builder) Gather(axis int, x, index Var) Var {
	if b.err != nil {
		return x
	}
	ok := axis < len(x.Shape) && len(x.Shape) == len(index.Shape)
	for a := range x.Shape {
		ok = ok && (a == axis || x.Shape[a] == index.Shape[a])
	}
	if !ok {
		return b.Fail("gather: indexes of %v along axis %d of %v", index.Shape, axis, x.Shape)
	}
	return b.Append(Step{Prim: Gather, Args: []Var{x, index}, Shape: index.Shape, Payload: Axis(axis)})
}

// Cat joins along an axis.
func (b *Builder) Cat(axis int, xs ...Var) Var {
	if b.err != nil {
		return xs[0]
	}
	if axis >= len(xs[0].Shape) {
		return b.Fail("cat: axis %d of %v", axis, xs[0].Shape)
	}
	shape := slices.Clone(xs[0].Shape)
	shape[axis] = 0
	for _, x := range xs {
		if len(x.Shape) != len(shape) {
			return b.Fail("cat: %v and %v do not go together", xs[0].Shape, x.Shape)
		}
		for a := range shape {
			if a != axis && x.Shape[a] != shape[a] {
				return b.Fail("cat: %v and %v do not go together", xs[0].Shape, x.Shape)
			}
		}
		shape[axis] += x.Shape[axis]
	}
	return b.Append(Step{Prim: Cat, Args: xs, Shape: shape, Payload: Axis(axis)})
}

// Affine is x·Wᵀ + c, W [out, in] streamed by row, over the last axis of x; c may be absent.
func (b *Builder) Affine(name string, x, w Var, c ...Var) Var {
	rows := 1
	if len(w.Shape) == 2 {
		rows = w.Shape[0]
	}
	if b.err == nil && (!b.streamed(w) || x.Last() != w.Last() || w.Last() == 0 || len(c) > 1) {
		return b.Fail("%s: %v times the rows of %v", name, x.Shape, w.Shape)
	}
	if len(c) == 1 && !slices.Equal(c[0].Shape, []int{rows}) {
		return b.Fail("%s: %d rows and a bias of %v", name, rows, c[0].Shape)
	}
	shape := append(slices.Clone(x.Shape[:len(x.Shape)-1]), rows)
	return b.Append(Step{Prim: Affine, Name: name, Args: append([]Var{x, w}, c...), Shape: shape})
}

// streamed reports whether a variable is a whole weight, which can be read row by row.
func (b *Builder) streamed(w Var) bool {
	s := &b.Steps[w.Step]
	return (s.Prim == Matrix || s.Prim == Weight) && slices.Equal(w.Shape, s.Shape)
}

// Lookup are rows of a table by index; with a fallback, row 0 for an index outside [0, rows).
func (b *Builder) Lookup(ids, table Var, rows int, fallback bool) Var {
	if b.err == nil && (!b.streamed(table) || rows > Size(table.Shape[:len(table.Shape)-1])) {
		return b.Fail("lookup: %d rows of %v", rows, table.Shape)
	}
	shape := append(slices.Clone(ids.Shape), table.Last())
	return b.Append(Step{Prim: Lookup, Args: []Var{ids, table}, Shape: shape, Payload: Entries{Rows: rows, Fallback: fallback}})
}

// Mask is 0 where a query may see a key and the lowest number elsewhere, keys along the last axis of the result. It may when k ≤ q and,
// with a window, k > q − window. The last position is that of the last key.
func (b *Builder) Mask(positions Var, window int) Var { return b.MaskOf(positions, window, b.Shape) }

// MaskOf is [Builder.Mask] of a shape, which need not be that of the result.
func (b *Builder) MaskOf(positions Var, window int, shape []int) Var {
	if last := len(shape) - 1; Size(shape[:last]) != Size(positions.Shape) {
		return b.Fail("mask: %v of positions %v", shape, positions.Shape)
	}
	return b.Append(Step{Prim: Mask, Args: []Var{positions}, Shape: shape, Payload: Sight{Window: float64(window)}})
}
