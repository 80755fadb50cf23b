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
		rank := 1000
		for _, base := range bases {
			for _, v := range program.Variants(base) {
				rank++
				if err := s.activationVariant(own, v, rank); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// activationVariant tries one, with its steps rounded in the ways in which engines do.
func (s *search) activationVariant(own program.Op, v program.Variant, rank int) error {
	what := fmt.Sprintf("the activation %s has %s", v.Op.Kind(), v.Words)
	if v.Op.Kind() != own.Kind() {
		what = fmt.Sprintf("the activation is %s, not %s, with %s", v.Op.Kind(), own.Kind(), v.Words)
	}
	round := []func(ed *program.Editor){func(*program.Editor) {}}
	if s.first.Call.DType != hooks.F32 {
		round = append(round, (*program.Editor).RoundAll, (*program.Editor).RoundCalls)
	}
	for k, rounded := range round {
		if err := s.try(hypothesis{
			class: program.Exchanged, rank: 3*rank + k, weak: v.Op.Kind() != own.Kind(), of: what,
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
			say: func(e *Entry) Name { return Name{What: what, Site: v.Op.Kind()} },
		}); err != nil {
			return err
		}
	}
	return nil
}
