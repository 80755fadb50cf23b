package program

import (
	"math"
	"strconv"
)

// Variant is an operation of one tensor with one of its steps changed.
type Variant struct {
	Op Op
	Change

	step int // of those that the operation adds
	make func(e *Editor, s *Step)
}

// Change is what a variant changes in an operation. Two variants of an operation do the same if their changes are equal.
type Change struct {
	Kind ChangeKind
	// Step is the name of the step or number in the formula. A step without a name, and each [Neg], has the name of its primitive. A number whose name is its
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
	StepAs                         // it is another function
	NumberAs                       // it is another number
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
	of      func(e *Editor, x Var) Var
}{
	{"x(27+x²)/(27+9x²)", func(e *Editor, x Var) Var {
		sq := e.Mul("", x, x)
		return e.Div("", e.Mul("", x, e.Add("", e.Literal(27), sq)), e.Add("", e.Literal(27), e.Mul("", e.Literal(9), sq)))
	}},
	{"x(15+x²)/(15+6x²)", func(e *Editor, x Var) Var {
		sq := e.Mul("", x, x)
		return e.Div("", e.Mul("", x, e.Add("", e.Literal(15), sq)), e.Add("", e.Literal(15), e.Mul("", e.Literal(6), sq)))
	}},
	{"x/(1+|x|)", func(e *Editor, x Var) Var { return e.Div("", x, e.Add("", e.Literal(1), e.Max(x, e.Neg(x)))) }},
	{"erf(x)", func(e *Editor, x Var) Var { return e.Erf("", x) }},
}

// functionsOfNumber are what a constant of a formula is taken for.
var functionsOfNumber = [...]func(x float64) float64{
	Squared: func(x float64) float64 { return x * x }, Rooted: math.Sqrt, Inverted: func(x float64) float64 { return 1 / x },
	Doubled: func(x float64) float64 { return 2 * x }, Halved: func(x float64) float64 { return x / 2 }, Negated: func(x float64) float64 { return -x },
}

// Variants are those of an operation: a step left out or exchanged, a number for another, another function in the place of a tanh.
func Variants(o Op) []Variant {
	p, err := identity()
	if err != nil {
		return nil
	}
	e := p.Edit()
	first := len(e.steps)
	e.Insert(o, p.Out)
	if e.err != nil {
		return nil
	}
	var all []Variant
	add := func(step int, c Change, make func(e *Editor, s *Step)) {
		all = append(all, Variant{o, c, step - first, make})
	}
	for i := first; i < len(e.steps); i++ {
		s := &e.steps[i]
		name := s.Site
		if name == "" || s.Prim == Neg {
			name = s.Prim.String()
		}
		switch {
		case s.Prim == Number && s.Value > 0 && s.Value != 1:
			for f, of := range functionsOfNumber {
				v := of(s.Value)
				c := Change{Kind: NumberAs, Step: s.Site, Function: NumberFunction(f), Value: v, Right: s.Value}
				if s.Site == strconv.FormatFloat(s.Value, 'g', 6, 64) {
					c.Step = ""
				}
				add(i, c, func(_ *Editor, s *Step) { s.Value, s.inverse = v, false })
			}
		case s.Prim.leaf() || s.Prim == Copy || s.Prim == Round:
		default:
			for arg, a := range s.Args {
				if e.steps[a.step].Prim != Number && sameSizes(a.shape, s.Shape) && !(arg > 0 && sameView(a, s.Args[0])) {
					c := Change{Kind: StepLeftOut, Step: name}
					if len(s.Args) > 1 && e.steps[s.Args[1-arg].step].Prim != Number {
						c.Kind = OperandAlone
					}
					add(i, c, func(_ *Editor, s *Step) { s.handOn(s.Args[arg]) })
				}
			}
			for _, other := range exchangeable[s.Prim] {
				add(i, Change{Kind: StepAs, Step: name, As: other.String()}, func(_ *Editor, s *Step) { s.Prim, s.byNumber = other, false })
			}
		}
		if s.Prim == Tanh {
			for _, f := range functionsForTanh {
				add(i, Change{Kind: StepAs, Step: Tanh.String(), As: f.formula}, func(e *Editor, s *Step) {
					step := s.Args[0]
					v := f.of(e, step)
					e.steps[i-first+e.inserted].handOn(v)
				})
			}
		}
	}
	return all
}

// handOn makes a step of no program yet hand an operand on.
func (s *Step) handOn(v Var) {
	s.Prim, s.Args, s.Fallback, s.byNumber = Round, []Var{v}, false, false
	if s.Round == None {
		s.Round = Plain
	}
}

func sameSizes(a, b []int) bool { return size(a) == size(b) }

// identity is a program that hands its input on.
func identity() (*Program, error) {
	b := NewBuilder()
	b.Shape = []int{1, 2}
	return b.Program(b.R(b.Input(0, []int{1, 2})))
}

// InsertVariant is Insert of a variant.
func (e *Editor) InsertVariant(v Variant, x Var) Var {
	e.inserted = len(e.steps)
	out := e.Insert(v.Op, x)
	if at := e.inserted + v.step; e.err == nil && at < len(e.steps) {
		v.make(e, &e.steps[at])
	}
	return out
}

// RoundCalls rounds every step that was added to the model's dtype, as RoundAll, but for squares that are multiplied to a cube: a power
// is one call.
func (e *Editor) RoundCalls() {
	for i := len(e.p.Steps); i < len(e.steps); i++ {
		s := &e.steps[i]
		if !s.Prim.Computes() || s.Round != Plain {
			continue
		}
		power := false
		for k := i + 1; k < len(e.steps); k++ {
			o := &e.steps[k]
			if o.Prim == Mul && s.Prim == Mul && len(o.Args) == 2 && o.Args[0].step == i && sameView(o.Args[1], s.Args[0]) {
				power = true
			}
		}
		if !power {
			s.Round = Model
		}
	}
}

// Inner is the result of a step that was added, from one on, as large as a variable: the n-th that computes before the last such.
func (e *Editor) Inner(from int, y Var, n int) (Var, bool) {
	for i := len(e.steps) - 1; i >= from; i-- {
		s := &e.steps[i]
		if !s.Prim.Computes() || !sameSizes(s.Shape, y.shape) {
			continue
		}
		if n == 0 {
			return Var{i, 0, s.Shape, contiguous(s.Shape)}, true
		}
		n--
	}
	return y, false
}
