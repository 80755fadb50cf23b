package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// relu is max(0, x), and quick is x / (1 + exp(−1.702·x)), by which some engines approximate GELU. No family of the order has them.
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

// The others are no activation of a family of the order either: relu that ends at 6 and x·relu6(x+3)/6, as on small devices, a small slope below 0,
// the sigmoid alone, and x·tanh(log(1+eˣ)).
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

// quickly is quick as three calls, each of which rounds its result.
type quickly struct{}

func (quickly) Kind() string { return "quick_gelu" }

func (quickly) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	scaled := b.R(b.Mul("scaled", x, b.Scalar("1.702", 1.702)))
	sigmoid := b.R(b.Div("sigmoid", b.Literal(1), b.Add("1+exp", b.Literal(1), b.Exp("exp", b.Neg(scaled)))))
	return b.Mul("product", x, sigmoid)
}

// clipped is x between −1 and 1, in place of its tanh.
func clipped(ed *program.Editor, x program.Var) program.Var {
	one := ed.Literal(1)
	return ed.Neg(ed.Max(ed.Neg(one), ed.Neg(ed.Max(ed.Neg(one), x))))
}

// activations are functions of one number that take each other's place.
var activations = append(op.Activations(), relu{}, quick{}, quickly{}, op.Tanh{}, op.ReLUSquared{}, relu6{}, hard{}, leaky{}, sigmoid{}, mish{})

// function is the term of a function of one number.
func function(name string) Term { return Term{Kind: Function, Name: name} }

// kindOf is the kind of the operation that a step is of.
func kindOf(s *program.Step) string {
	kind, _, _ := strings.Cut(s.Form, "(")
	return kind
}

// piece is a part of a program that is a known activation: its input, and its last step.
type piece struct {
	in   program.Var
	last int
}

// pieces are the activations of a kind in a program; nil where one of them reads several tensors.
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
			from := p.Source(a)
			first, inside := of[from]
			switch {
			case inside && in[first].Shape() == nil: // of numbers alone
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
				if !s.Prim.Computes() && s.Prim != program.Max { // it hands on what was computed
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

// identity is for an activation that is left out.
type identity struct{}

func (identity) Kind() string { return "none" }

func (identity) Steps(_ *program.Builder, in, _ []program.Var) program.Var { return in[0] }

// softplus is the activation of time steps. Its formula is that of recorded programs.
type softplus struct{}

func (softplus) Kind() string { return "softplus" }

func (softplus) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	return b.Add("sum", b.Max(x, b.Literal(0)), b.Log1p("log", b.Exp("exp", b.Neg(b.Max(x, b.Neg(x))))))
}

// activations tries each activation in place of each, and each with every step rounded; and none, and a softmax.
func (s *search) activations() error {
	for _, own := range append(op.Activations(), softplus{}, sigmoid{}) {
		all := pieces(s.first.Program, own.Kind())
		if len(all) == 0 || s.cautious && !slices.Contains(op.Activations(), own) {
			continue
		}
		for _, other := range append(slices.Clone(activations), identity{}, softmax{}) {
			for _, every := range []bool{false, true} {
				if other == own || s.cautious && (every || !slices.Contains(op.Activations(), other)) || other == (identity{}) && (every || len(s.found) > 0) {
					continue
				}
				h := hypothesis{
					class: program.Exchanged, of: "activation." + other.Kind(),
					make: func(e *Entry) *program.Edited { return replaced(e, own, other, every) },
					say: func(e *Entry) Name {
						m := Mistake{Kind: "activation.other", Place: s.site(e, all[0].last), By: function(other.Kind()), For: function(own.Kind())}
						switch {
						case other == (identity{}):
							m.Kind, m.By = "activation.left-out", Term{}
						case every:
							m.Kind = "activation.other-rounded"
						}
						return m.name()
					},
				}
				if err := s.try(h); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// functions tries a limit and a sigmoid in place of each tanh.
func (s *search) functions() error {
	if err := s.tanhs("tanh.clip", clipped); err != nil {
		return err
	}
	if err := s.tanhs("tanh.sigmoid", func(ed *program.Editor, x program.Var) program.Var { return ed.Insert(sigmoid{}, x) }); err != nil {
		return err
	}
	return s.tanhs("tanh.softmax", func(ed *program.Editor, x program.Var) program.Var {
		exp := ed.Exp("", ed.Sub("", x, ed.RowMax(x)))
		return ed.Div("", exp, ed.Sum("", exp))
	})
}

// tanhs tries another function in place of each tanh.
func (s *search) tanhs(kind Kind, instead func(ed *program.Editor, x program.Var) program.Var) error {
	t := s.first.signed(s.m)
	for _, i := range t.Firsts() {
		if t.Steps[i].Prim != program.Tanh {
			continue
		}
		at := t.Of(i)
		h := hypothesis{
			class: program.Exchanged,
			make: func(e *Entry) *program.Edited {
				t, ed := e.signed(s.m), e.Program.Edit()
				all := t.Copies(at)
				for _, k := range all {
					ed.Pass(k, instead(ed, t.Steps[k].Args[0]))
				}
				if len(all) == 0 {
					return nil
				}
				return ended(ed)
			},
			say: func(e *Entry) Name {
				return Mistake{Kind: kind, Place: s.site(e, i)}.name()
			},
		}
		if err := s.try(h); err != nil {
			return err
		}
	}
	return nil
}

// replaced has another activation in place of a program's.
func replaced(e *Entry, own, other op.Op, every bool) *program.Edited {
	all := pieces(e.Program, own.Kind())
	ed := e.Program.Edit()
	for _, one := range all {
		v := ed.Insert(other, one.in)
		if every {
			ed.RoundAll()
		}
		ed.Pass(one.last, v)
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}
