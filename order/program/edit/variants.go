package edit

import (
	"math"
	"strconv"

	"github.com/tracediff/tracediff/order/program"
)

// Variant is an operation of one tensor with one of its steps changed.
type Variant struct {
	Op program.Op
	Change

	step int // of those that the operation adds
	make func(e *Editor, s *program.Step)
}

// Change is what a variant changes in an operation. Two variants of an operation do the same if their changes are equal.
type Change struct {
	Kind ChangeKind
	// Step is the name of the step or number in the formula. A step without a name, and each [program.Neg], has the name of its primitive. A number whose name is its
	// value has no name.
	Step string
	// As is the function that takes the step's place: a formula, or the name of a primitive. Only [StepAs] has it.
	As string
	// [NumberAs] has Value = Function(Right) in place of the number Right.
	Function     NumberFunction
	Value, Right float64
}

// ChangeKind is what is done to a step.
type ChangeKind uint8

// The kinds of changes.
const (
	StepLeftOut  ChangeKind = iota // its result is its only operand that is no number
	OperandAlone                   // its result is one of its two operands
	StepAs                         // a different function
	NumberAs                       // a different number
)

// NumberFunction is a function of a constant of a formula.
type NumberFunction uint8

// The functions of a constant.
const (
	Squared NumberFunction = iota
	Rooted
	Inverted
	Doubled
	Halved
	Negated
)

// functionsForTanh are what engines take in the place of a tanh.
var functionsForTanh = []struct {
	formula string
	of      func(e *Editor, x program.Var) program.Var
}{
	{"x(27+x²)/(27+9x²)", func(e *Editor, x program.Var) program.Var {
		sq := e.Mul("", x, x)
		return e.Div("", e.Mul("", x, e.Add("", e.Literal(27), sq)), e.Add("", e.Literal(27), e.Mul("", e.Literal(9), sq)))
	}},
	{"x(15+x²)/(15+6x²)", func(e *Editor, x program.Var) program.Var {
		sq := e.Mul("", x, x)
		return e.Div("", e.Mul("", x, e.Add("", e.Literal(15), sq)), e.Add("", e.Literal(15), e.Mul("", e.Literal(6), sq)))
	}},
	{"x/(1+|x|)", func(e *Editor, x program.Var) program.Var {
		return e.Div("", x, e.Add("", e.Literal(1), e.Max(x, e.Neg(x))))
	}},
	{"erf(x)", func(e *Editor, x program.Var) program.Var { return e.Erf("", x) }},
}

// functionsOfNumber are what a constant of a formula is taken for.
var functionsOfNumber = [...]func(x float64) float64{
	Squared: func(x float64) float64 { return x * x }, Rooted: math.Sqrt, Inverted: func(x float64) float64 { return 1 / x },
	Doubled: func(x float64) float64 { return 2 * x }, Halved: func(x float64) float64 { return x / 2 }, Negated: func(x float64) float64 { return -x },
}

// Variants are those of an operation: a step left out or exchanged, a number for another, another function in the place of a tanh.
func Variants(o program.Op) []Variant {
	e, first := inserted(o)
	if e == nil {
		return nil
	}
	var all []Variant
	add := func(step int, c Change, make func(e *Editor, s *program.Step)) {
		all = append(all, Variant{o, c, step - first, make})
	}
	for i := first; i < len(e.Steps); i++ {
		s := &e.Steps[i]
		name := s.Site
		if name == "" || s.Prim == program.Neg {
			name = s.Prim.String()
		}
		switch {
		case s.Prim == program.Number && s.Number().Value > 0 && s.Number().Value != 1:
			for f, of := range functionsOfNumber {
				v := of(s.Number().Value)
				c := Change{Kind: NumberAs, Step: s.Site, Function: NumberFunction(f), Value: v, Right: s.Number().Value}
				if s.Site == strconv.FormatFloat(s.Number().Value, 'g', 6, 64) {
					c.Step = ""
				}
				add(i, c, func(_ *Editor, s *program.Step) {
					s.Payload = program.Constant{Value: v, Units: s.Number().Units, Fixed: s.Number().Fixed}
				})
			}
		case s.Prim.IsLeaf() || s.Prim == program.Copy || s.Prim == program.Round:
		default:
			for arg, a := range s.Args {
				if e.Steps[a.Step].Prim != program.Number && sameSizes(a.Shape, s.Shape) && !(arg > 0 && a.Same(s.Args[0])) {
					c := Change{Kind: StepLeftOut, Step: name}
					if len(s.Args) > 1 && e.Steps[s.Args[1-arg].Step].Prim != program.Number {
						c.Kind = OperandAlone
					}
					add(i, c, func(_ *Editor, s *program.Step) { handOn(s, s.Args[arg]) })
				}
			}
			for _, other := range exchangeable[s.Prim] {
				add(i, Change{Kind: StepAs, Step: name, As: other.String()}, func(_ *Editor, s *program.Step) { s.Prim, s.Payload = other, nil })
			}
		}
		if s.Prim == program.Tanh {
			for _, f := range functionsForTanh {
				add(i, Change{Kind: StepAs, Step: program.Tanh.String(), As: f.formula}, func(e *Editor, s *program.Step) {
					step := s.Args[0]
					v := f.of(e, step)
					handOn(&e.Steps[i-first+e.inserted], v)
				})
			}
		}
	}
	return all
}

// handOn makes a step of no program yet hand an operand on.
func handOn(s *program.Step, v program.Var) {
	s.Prim, s.Args, s.Payload = program.Round, []program.Var{v}, nil
	if s.Round == program.None {
		s.Round = program.Plain
	}
}

func sameSizes(a, b []int) bool { return program.Size(a) == program.Size(b) }

// inserted inserts an operation of one tensor into a program that hands its input on: first is the operation's first step. The editor is nil
// for other operations.
func inserted(o program.Op) (e *Editor, first int) {
	b := program.NewBuilder()
	b.Shape = []int{1, 2}
	p, err := b.Program(b.R(b.Input(0, []int{1, 2})))
	if err != nil {
		return nil, 0
	}
	e = NewEditor(p)
	if e.Insert(o, p.Out); e.Err() != nil {
		return nil, 0
	}
	return e, len(p.Steps)
}

// InsertVariant is Insert of a variant.
func InsertVariant(e *Editor, v Variant, x program.Var) program.Var {
	e.inserted = len(e.Steps)
	out := e.Insert(v.Op, x)
	if at := e.inserted + v.step; e.Err() == nil && at < len(e.Steps) {
		v.make(e, &e.Steps[at])
	}
	return out
}

// RoundCalls rounds every step that was added to the model's dtype, as RoundAll, but for squares that are multiplied to a cube: a power
// is one call.
func (e *Editor) RoundCalls() {
	for i := len(e.Before.Steps); i < len(e.Steps); i++ {
		s := &e.Steps[i]
		if !s.Prim.Computes() || s.Round != program.Plain {
			continue
		}
		power := false
		for k := i + 1; k < len(e.Steps); k++ {
			o := &e.Steps[k]
			if o.Prim == program.Mul && s.Prim == program.Mul && len(o.Args) == 2 && o.Args[0].Step == i && o.Args[1].Same(s.Args[0]) {
				power = true
			}
		}
		if !power {
			s.Round = program.Model
		}
	}
}

// Inner returns the result of an added step, from the step from on, with the size of y: n computing steps before the
// last such step. ok is false if there are fewer.
func (e *Editor) Inner(from int, y program.Var, n int) (program.Var, bool) {
	for i := len(e.Steps) - 1; i >= from; i-- {
		s := &e.Steps[i]
		if !s.Prim.Computes() || !sameSizes(s.Shape, y.Shape) {
			continue
		}
		if n == 0 {
			return program.Var{Step: i, Off: 0, Shape: s.Shape, Stride: program.Contiguous(s.Shape)}, true
		}
		n--
	}
	return y, false
}

// FormulaNumber is a number in the formula of an operation: its step, counted from the operation's first, and its value.
type FormulaNumber struct {
	Step  int
	Value float64
}

// NumbersOf lists the numbers in the formula of an operation of one tensor, but for 0, 1 and negative numbers.
func NumbersOf(o program.Op) []FormulaNumber {
	e, first := inserted(o)
	if e == nil {
		return nil
	}
	var all []FormulaNumber
	for i := first; i < len(e.Steps); i++ {
		if s := &e.Steps[i]; s.Prim == program.Number && s.Number().Value > 0 && s.Number().Value != 1 {
			all = append(all, FormulaNumber{i - first, s.Number().Value})
		}
	}
	return all
}

// InsertWithNumber is Insert of an operation with v in place of the number at a step. It fails if the step is no number.
func InsertWithNumber(e *Editor, o program.Op, step int, v float64, x program.Var) program.Var {
	first := len(e.Steps)
	out := e.Insert(o, x)
	if at := first + step; e.Err() == nil && at >= first && at < len(e.Steps) && e.Steps[at].Prim == program.Number {
		old := e.Steps[at].Number()
		e.Steps[at].Payload = program.Constant{Value: v, Units: old.Units, Fixed: old.Fixed}
		return out
	}
	return e.Fail("number")
}
