package diagnose

import (
	"github.com/tracediff/tracediff/order/program"
)

// softmax takes the place of a sigmoid, as in a router.
type softmax struct{}

func (softmax) Kind() string { return "softmax" }

func (softmax) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	exp := b.Exp("exp", b.Sub("difference", x, b.RowMax(x)))
	return b.Div("quotient", exp, b.Sum("sum", exp))
}

// softmaxes tries what is known of softmaxes beside what they are of: a sigmoid in their place, one of all from which a part is chosen, one of
// what is chosen alone, and one without a tensor that is joined to the scores.
func (s *search) softmaxes() error {
	p := s.first.Program
	all := p.Softmaxes()
	if len(all) == 0 {
		return nil
	}
	site := s.site(s.first, all[0])
	for _, v := range []struct {
		kind Kind
		make func(p *program.Program) *program.Edited
	}{
		{"router.sigmoid", func(p *program.Program) *program.Edited {
			return p.SoftmaxBy(func(ed *program.Editor, x program.Var) program.Var { return ed.Insert(sigmoid{}, x) })
		}},
		{"router.softmax-over-all", (*program.Program).SoftmaxOfAll},
		{"router.softmax-over-chosen", (*program.Program).SoftmaxOfChosen},
	} {
		if err := s.variant(Mistake{Kind: v.kind, Place: site}, func(e *Entry) *program.Edited { return v.make(e.Program) }); err != nil {
			return err
		}
	}
	for part, v := range p.Joined() {
		m := Mistake{Kind: "softmax.joined-left-out", Place: site, Of: s.value(s.first, v)}
		if err := s.variant(m, func(e *Entry) *program.Edited {
			return e.Program.SoftmaxWithout(part, e.Call.Arith.Lowest())
		}); err != nil {
			return err
		}
	}
	return nil
}

// leastPart is the least number of channels that has a norm of its own.
const leastPart = 4

// meansOfParts tries norms of parts of their rows, such as those of a head.
func (s *search) meansOfParts() error {
	all := s.first.Program.Means()
	if len(all) == 0 {
		return nil
	}
	width := s.first.Program.Result(all[0]).Last()
	for n := width / 2; n >= leastPart; n-- {
		if width%n != 0 {
			continue
		}
		m := Mistake{Kind: "norm.of-parts", Place: s.site(s.first, all[0]), N: n, M: width}
		if err := s.variant(m, func(e *Entry) *program.Edited { return e.Program.MeansOfParts(n) }); err != nil {
			return err
		}
	}
	return nil
}

// behind tries a product of the program that is taken of its result.
func (s *search) behind() error {
	t := s.first.signed(s.m)
	for _, i := range t.Firsts() {
		st := &t.Steps[i]
		if st.Prim != program.Mul || i == t.Source(t.Out) || len(st.Args) != 2 {
			continue
		}
		for k := range st.Args {
			at := program.Place{Step: t.Of(i).Step, Arg: 1 - k}
			if v := t.At(at); t.Steps[t.Source(v)].Prim == program.Number || product(v.Shape()) != product(t.Out.Shape()) {
				continue
			}
			m := Mistake{Kind: "order.product-last", Place: s.site(s.first, i), Of: s.value(s.first, t.At(at))}
			if err := s.try(hypothesis{
				class: program.Order, make: func(e *Entry) *program.Edited { return e.signed(s.m).ProductLast(at) },
				say: func(*Entry) Name { return m.name() },
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
