package diagnose

import (
	"iter"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
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

// activationVariants yields activations with one changed step: first the program's own activation, then other activations in its place. Each
// activation is rounded in the ways of known engines.
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
			at := s.first.signed(s.m).PlaceOf(all[0].last)
			for _, ownFirst := range []bool{true, false} {
				for n, base := range variantBases {
					if (base.Kind() == own.Kind()) != ownFirst {
						continue
					}
					for k, v := range edit.Variants(base) {
						m := variantOf(v.Change, base.Kind(), own.Kind())
						m.Edit = edit.Edit{Class: edit.Exchanged, At: []edit.Place{at}, Value: float64(k), Map: edit.Map{N: n}}.Text()
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

// variantActivation makes an activation with a changed step. The mistake's edit has the index of the base in variantBases, and the index of the
// variant.
func variantActivation(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	if !ok || d.Map.N < 0 || d.Map.N >= len(variantBases) {
		return nil
	}
	variants := edit.Variants(variantBases[d.Map.N])
	own := m.For.Name
	if own == "" {
		own = m.Place
	}
	all, n := pieces(e.Program, own), int(d.Value)
	if len(all) == 0 || n < 0 || n >= len(variants) {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	for _, one := range all {
		x := edit.InsertVariant(ed, variants[n], one.in)
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

// variantKinds are the mistakes of a changed activation. The first kind is for the right activation with a change, the second for a wrong activation
// with a change.
var variantKinds = map[edit.ChangeKind][2]Kind{
	edit.StepLeftOut:  {"activation.step-left-out", "activation.other-step-left-out"},
	edit.OperandAlone: {"activation.operand-alone", "activation.other-operand-alone"},
	edit.StepAs:       {"activation.step-as", "activation.other-step-as"},
	edit.NumberAs:     {"activation.number", "activation.other-number"},
}

// numberTerms are the terms for functions of a number.
var numberTerms = map[edit.NumberFunction]TermKind{
	edit.Squared: ItsSquare, edit.Rooted: ItsRoot, edit.Inverted: ItsReciprocal, edit.Doubled: TwiceIt, edit.Halved: HalfOfIt, edit.Negated: ItsNegative,
}

// variantOf is the mistake of a changed activation. kind is the changed activation, own the right activation.
func variantOf(c edit.Change, kind, own string) Mistake {
	m := Mistake{Kind: variantKinds[c.Kind][0], Place: kind, Of: Term{Kind: AName, Name: c.Step}}
	if kind != own {
		m.Kind, m.For = variantKinds[c.Kind][1], function(own)
	}
	if c.Step == program.Neg.String() {
		m.Of = Term{Kind: TheMinus}
	}
	switch c.Kind {
	case edit.StepAs:
		m.By = function(c.As)
	case edit.NumberAs:
		m.Of, m.By = literal(c.Right), Term{Kind: numberTerms[c.Function], X: c.Value}
		if c.Step != "" {
			m.Of = Term{Kind: Constant, Name: c.Step, X: c.Right}
		}
	}
	return m
}
