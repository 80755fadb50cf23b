package diagnose

import (
	"fmt"
	"slices"

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

// activationVariants tries activations with one of their steps changed: the program's own, and others in its place.
func (s *search) activationVariants() error {
	for _, own := range append(op.Activations(), softplus{}, sigmoid{}) {
		if len(pieces(s.first.Program, own.Kind())) == 0 {
			continue
		}
		bases := append(op.Activations(), swish{}, quick{})
		slices.SortStableFunc(bases, func(a, b program.Op) int { // the own one first
			x, y := a.Kind() == own.Kind(), b.Kind() == own.Kind()
			if x == y {
				return 0
			} else if x {
				return -1
			}
			return 1
		})
		for _, base := range bases {
			for _, v := range program.Variants(base) {
				if err := s.activationVariant(own, v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// activationVariant tries one, with its steps rounded in the ways in which engines do.
func (s *search) activationVariant(own program.Op, v program.Variant) error {
	m := variantOf(v.Change, v.Op.Kind(), own.Kind())
	round := []func(ed *program.Editor){func(*program.Editor) {}}
	if s.first.Call.DType != hooks.F32 {
		round = append(round, (*program.Editor).RoundAll, (*program.Editor).RoundCalls)
	}
	for _, rounded := range round {
		if err := s.try(hypothesis{
			class: program.Exchanged, weak: v.Op.Kind() != own.Kind(), of: fmt.Sprintf("%s.%s.%v", own.Kind(), v.Op.Kind(), v.Change),
			make: func(e *Entry) *program.Edited {
				all := pieces(e.Program, own.Kind())
				ed := e.Program.Edit()
				for _, one := range all {
					x := ed.InsertVariant(v, one.in)
					rounded(ed)
					ed.Pass(one.last, x)
				}
				if len(all) == 0 {
					return nil
				}
				return ended(ed)
			},
			say: func(*Entry) Name { return m.name() },
		}); err != nil {
			return err
		}
	}
	return nil
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
