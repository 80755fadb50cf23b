package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// relu is max(0, x), and quick is x / (1 + exp(−1.702·x)), with which some ports approximate GELU. No family of the order has these activations.
type (
	relu  struct{}
	quick struct{}
)

func (relu) Kind() string  { return "relu" }
func (quick) Kind() string { return "quick_gelu" }

func (relu) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Max(b.Literal(0), in[0])
}

func (quick) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	return b.Div("quotient", x, b.Add("1+exp", b.Literal(1), b.Exp("exp", b.Neg(b.Mul("scaled", x, b.Scalar("1.702", 1.702))))))
}

// No family of the order has these either: relu that ends at 6 and x·relu6(x+3)/6, as on small devices, a small slope below 0, the sigmoid, and
// x·tanh(log(1+eˣ)).
type (
	relu6   struct{}
	hard    struct{}
	leaky   struct{}
	sigmoid struct{}
	mish    struct{}
)

func (relu6) Kind() string   { return "relu6" }
func (hard) Kind() string    { return "hard_swish" }
func (leaky) Kind() string   { return "leaky_relu" }
func (sigmoid) Kind() string { return "sigmoid" }
func (mish) Kind() string    { return "mish" }

func (relu6) Steps(b *program.Builder, in, _ []program.Var) program.Var { return upTo6(b, in[0]) }

// upTo6 is x between 0 and 6.
func upTo6(b *program.Builder, x program.Var) program.Var {
	return b.Neg(b.Max(b.Literal(-6), b.Neg(b.Max(b.Literal(0), x))))
}

func (hard) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	return b.Div("quotient", b.Mul("product", x, upTo6(b, b.Add("+3", x, b.Literal(3)))), b.Literal(6))
}

func (leaky) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	return b.Max(x, b.Mul("slope", x, b.Scalar("0.01", 0.01)))
}

func (sigmoid) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Div("quotient", b.Literal(1), b.Add("1+exp", b.Literal(1), b.Exp("exp", b.Neg(in[0]))))
}

func (mish) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Mul("product", in[0], b.Tanh("of-softplus", b.Log1p("softplus", b.Exp("exp", in[0]))))
}

// quickly is quick as three calls; each call rounds its result.
type quickly struct{}

func (quickly) Kind() string { return "quick_gelu" }

func (quickly) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	scaled := b.R(b.Mul("scaled", x, b.Scalar("1.702", 1.702)))
	sigmoid := b.R(b.Div("sigmoid", b.Literal(1), b.Add("1+exp", b.Literal(1), b.Exp("exp", b.Neg(scaled)))))
	return b.Mul("product", x, sigmoid)
}

// clipped is x between −1 and 1, in place of its tanh.
func clipped(ed *edit.Editor, x program.Var) program.Var {
	one := ed.Literal(1)
	return ed.Neg(ed.Max(ed.Neg(one), ed.Neg(ed.Max(ed.Neg(one), x))))
}

// activations are functions of one number that take each other's place.
var activations = append(op.Activations(), relu{}, quick{}, quickly{}, op.Tanh{}, op.ReLUSquared{}, relu6{}, hard{}, leaky{}, sigmoid{}, mish{})

// function is the term of a function of one number.
func function(name string) Term { return Term{Kind: Function, Name: name} }

// kindOf is the kind of the operation that a step belongs to.
func kindOf(s *program.Step) string {
	kind, _, _ := strings.Cut(s.Form, "(")
	return kind
}

// piece is a known activation within a program, with its input and its last step.
type piece struct {
	in   program.Var
	last int
}

// pieces are the activations of a kind in a program; nil if one activation reads several tensors.
func pieces(p *program.Program, kind string) (all []piece) {
	of := map[int]int{} // by step: the first step of its piece
	in := map[int]program.Var{}
	last := map[int]int{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if kindOf(s) != kind || len(s.Args) == 0 {
			continue
		}
		own, end := i, i
		for _, a := range s.Args {
			from := a.Step
			first, inside := of[from]
			switch {
			case inside && in[first].Shape == nil: // computed from numbers only
				continue
			case inside:
				a = in[first]
			case p.Steps[from].Prim == program.Number:
				continue
			default:
				first = own
			}
			if before, ok := in[own]; ok && !before.Same(a) {
				return nil
			}
			in[own] = a
			if first != own { // they are read together: one piece
				for k, o := range of {
					if o == first {
						of[k] = own
					}
				}
				if !s.Prim.Computes() && s.Prim != program.Max { // it hands on a computed value
					end = last[first]
				}
				delete(last, first)
			}
		}
		of[i], last[own] = own, end
	}
	for i := range p.Steps {
		if end, ok := last[i]; ok {
			all = append(all, piece{in[i], end})
		}
	}
	return all
}

// identity replaces an activation that is left out.
type identity struct{}

func (identity) Kind() string { return "none" }

func (identity) Steps(_ *program.Builder, in, _ []program.Var) program.Var { return in[0] }

// softplus is the activation of time steps. It has the formula of recorded programs.
type softplus struct{}

func (softplus) Kind() string { return "softplus" }

func (softplus) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	return b.Add("sum", b.Max(x, b.Literal(0)), b.Log1p("log", b.Exp("exp", b.Neg(b.Max(x, b.Neg(x))))))
}

// activationsOf are the activations that a program may have, from families of the order and from recorded programs.
var activationsOf = append(op.Activations(), softplus{}, sigmoid{})

// otherActivations yields other activations in place of each activation of the program, plain and with every step rounded. It also yields the activation
// left out, and a softmax in its place. A cautious search yields only the activations of families.
func otherActivations(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, own := range activationsOf {
			all := pieces(s.first.Program, own.Kind())
			if len(all) == 0 || s.cautious && !slices.Contains(op.Activations(), own) {
				continue
			}
			m := Mistake{Place: s.site(s.first, all[0].last), For: function(own.Kind())}
			for _, other := range activations {
				if other == own || s.cautious && !slices.Contains(op.Activations(), other) {
					continue
				}
				m.Kind, m.By, m.Rounding = "activation.other", function(other.Kind()), ""
				if other == (quickly{}) {
					m.Rounding = EachCall
				}
				if !yield(m) {
					return
				}
				if m.Kind, m.Rounding = "activation.other-rounded", EachStep; !s.cautious && !yield(m) {
					return
				}
			}
			if m.Kind, m.By, m.Rounding = "activation.left-out", (Term{}), ""; len(s.found) == 0 && !s.cautious && !yield(m) {
				return
			}
			m.Kind, m.By = "activation.other", function(softmax{}.Kind())
			if !s.cautious && !yield(m) {
				return
			}
			if m.Kind, m.Rounding = "activation.other-rounded", EachStep; !s.cautious && !yield(m) {
				return
			}
		}
	}
}

// otherActivation replaces an activation of the program.
func otherActivation(_ *subject, e *Entry, m Mistake) *program.Edited {
	other := activationCalled(m.By.Name, m.Rounding)
	all := pieces(e.Program, m.For.Name)
	if other == nil || len(all) == 0 {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	for _, one := range all {
		v := ed.Insert(other, one.in)
		if m.Rounding == EachStep {
			ed.RoundAll()
		}
		ed.Pass(one.last, v)
	}
	return ended(ed)
}

// activationCalled finds an activation by its name and rounding: the identity for no name, nil for an unknown name.
func activationCalled(name string, rounding Rounding) op.Op {
	switch {
	case name == "":
		return identity{}
	case name == quickly{}.Kind() && rounding == EachCall:
		return quickly{}
	case name == softmax{}.Kind():
		return softmax{}
	}
	for _, o := range activations {
		if o.Kind() == name {
			return o
		}
	}
	return nil
}

// tanhKinds are the kinds of mistakes with another function in place of a tanh.
var tanhKinds = []Kind{"tanh.clip", "tanh.sigmoid", "tanh.softmax"}

// otherTanhs yields a limit, a sigmoid and a softmax in place of each tanh.
func otherTanhs(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, kind := range tanhKinds {
			for _, i := range t.Firsts() {
				if t.Steps[i].Prim == program.Tanh && !yield(Mistake{Kind: kind, Place: s.site(s.first, i), Edit: placed(t.PlaceOf(i))}) {
					return
				}
			}
		}
	}
}

// otherTanh replaces a tanh by another function.
func otherTanh(s *subject, e *Entry, m Mistake) *program.Edited {
	t, ed := e.signed(s.m), edit.NewEditor(e.Program)
	all := t.Copies(s.place(m))
	for _, k := range all {
		x := t.Steps[k].Args[0]
		switch m.Kind {
		case "tanh.clip":
			ed.Pass(k, clipped(ed, x))
		case "tanh.sigmoid":
			ed.Pass(k, ed.Insert(sigmoid{}, x))
		default:
			exp := ed.Exp("", ed.Sub("", x, ed.RowMax(x)))
			ed.Pass(k, ed.Div("", exp, ed.Sum("", exp)))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}

// activationName is one text for an activation, whether each step is rounded or not.
func activationName(m Mistake) string { return "activation." + m.By.Name }
