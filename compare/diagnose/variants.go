package diagnose

import (
	"iter"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// swish is x·sigmoid(x) as two calls: the sigmoid rounds its result.
type swish struct{}

func (swish) Kind() string { return "silu" }

func (swish) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	return b.Mul("product", x, b.R(b.Div("sigmoid", b.Literal(1), b.Add("1+exp", b.Literal(1), b.Exp("exp", b.Neg(x))))))
}

// variantBases are the activations whose steps are changed.
var variantBases = append(op.Activations(), swish{}, quick{})

// activationVariants yields activations with one of their steps changed: the program's own first, and others in its place. Each has its steps rounded in the ways in
// which engines do.
func activationVariants(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		roundings := []Rounding{"", EachStep, EachCall}
		if s.first.Call.DType == hooks.F32 {
			roundings = roundings[:1]
		}
		for _, own := range activationsOf {
			all := pieces(s.first.Program, own.Kind())
			if len(all) == 0 {
				continue
			}
			at := s.first.signed(s.m).Of(all[0].last)
			for _, ownFirst := range []bool{true, false} {
				for n, base := range variantBases {
					if (base.Kind() == own.Kind()) != ownFirst {
						continue
					}
					for k, v := range program.Variants(base) {
						m := variantOf(v.Change, base.Kind(), own.Kind())
						m.Edit = program.Edit{Class: program.Exchanged, At: []program.Place{at}, Value: float64(k), Map: program.Map{N: n}}.Text()
						for _, m.Rounding = range roundings {
							if !yield(m) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// variantActivation has the activation with a changed step that the edit of a mistake counts: which base, and which of its variants.
func variantActivation(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	if !ok || d.Map.N < 0 || d.Map.N >= len(variantBases) {
		return nil
	}
	variants := program.Variants(variantBases[d.Map.N])
	own := m.For.Name
	if own == "" {
		own = m.Place
	}
	all, n := pieces(e.Program, own), int(d.Value)
	if len(all) == 0 || n < 0 || n >= len(variants) {
		return nil
	}
	ed := e.Program.Edit()
	for _, one := range all {
		x := ed.InsertVariant(variants[n], one.in)
		switch m.Rounding {
		case EachStep:
			ed.RoundAll()
		case EachCall:
			ed.RoundCalls()
		}
		ed.Pass(one.last, x)
	}
	return ended(ed)
}

// variantKinds are the mistakes of a changed activation. The first kind is for the right activation with a change, the second for a wrong activation with a change.
var variantKinds = map[program.ChangeKind][2]Kind{
	program.StepLeftOut:  {"activation.step-left-out", "activation.other-step-left-out"},
	program.OperandAlone: {"activation.operand-alone", "activation.other-operand-alone"},
	program.StepAs:       {"activation.step-as", "activation.other-step-as"},
	program.NumberAs:     {"activation.number", "activation.other-number"},
}

// numberTerms are the terms of a function of a number.
var numberTerms = map[program.NumberFunction]TermKind{
	program.Squared: ItsSquare, program.Rooted: ItsRoot, program.Inverted: ItsReciprocal, program.Doubled: TwiceIt, program.Halved: HalfOfIt, program.Negated: ItsNegative,
}

// variantOf is the mistake of a changed activation. Its kind and that of the right activation may differ.
func variantOf(c program.Change, kind, own string) Mistake {
	m := Mistake{Kind: variantKinds[c.Kind][0], Place: kind, Of: Term{Kind: AName, Name: c.Step}}
	if kind != own {
		m.Kind, m.For = variantKinds[c.Kind][1], function(own)
	}
	if c.Step == program.Neg.String() {
		m.Of = Term{Kind: TheMinus}
	}
	switch c.Kind {
	case program.StepAs:
		m.By = function(c.As)
	case program.NumberAs:
		m.Of, m.By = literal(c.Right), Term{Kind: numberTerms[c.Function], X: c.Value}
		if c.Step != "" {
			m.Of = Term{Kind: Constant, Name: c.Step, X: c.Right}
		}
	}
	return m
}
