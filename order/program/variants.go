package program

import (
	"fmt"
	"math"
	"strconv"
)

// Variant is an operation of one tensor with one of its steps changed.
type Variant struct {
	Op    Op
	Words string // what is changed

	step int // of those that the operation adds
	make func(e *Editor, s *Step)
}

// functionsForTanh are what engines take in the place of a tanh.
var functionsForTanh = []struct {
	words string
	of    func(e *Editor, x Var) Var
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
var functionsOfNumber = []struct {
	words string
	of    func(x float64) float64
}{
	{"its square", func(x float64) float64 { return x * x }},
	{"its root", math.Sqrt},
	{"its reciprocal", func(x float64) float64 { return 1 / x }},
	{"twice it", func(x float64) float64 { return 2 * x }},
	{"half of it", func(x float64) float64 { return x / 2 }},
	{"its negative", func(x float64) float64 { return -x }},
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
	add := func(step int, words string, make func(e *Editor, s *Step)) {
		all = append(all, Variant{o, words, step - first, make})
	}
	for i := first; i < len(e.steps); i++ {
		s := &e.steps[i]
		name := s.Site
		if name == "" {
			name = s.Prim.String()
		}
		if s.Prim == Neg {
			name = "the minus"
		}
		switch {
		case s.Prim == Number && s.Value > 0 && s.Value != 1:
			for _, f := range functionsOfNumber {
				v := f.of(s.Value)
				of := strconv.FormatFloat(s.Value, 'g', 6, 64)
				if s.Site != "" && s.Site != of {
					of = s.Site + ", " + of
				}
				add(i, fmt.Sprintf("%.6g, %s, for %s", v, f.words, of), func(_ *Editor, s *Step) { s.Value, s.inverse = v, false })
			}
		case s.Prim.leaf() || s.Prim == Copy || s.Prim == Round:
		default:
			for arg, a := range s.Args {
				if e.steps[a.step].Prim != Number && sameSizes(a.shape, s.Shape) && !(arg > 0 && sameView(a, s.Args[0])) {
					words := name + " left out"
					if len(s.Args) > 1 && e.steps[s.Args[1-arg].step].Prim != Number {
						words = fmt.Sprintf("one operand of %s alone", name)
					}
					add(i, words, func(_ *Editor, s *Step) { s.handOn(s.Args[arg]) })
				}
			}
			for _, other := range exchangeable[s.Prim] {
				add(i, fmt.Sprintf("%s as %s", name, other), func(_ *Editor, s *Step) { s.Prim, s.byNumber = other, false })
			}
		}
		if s.Prim == Tanh {
			for _, f := range functionsForTanh {
				add(i, "tanh as "+f.words, func(e *Editor, s *Step) {
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
