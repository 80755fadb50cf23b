package certify

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// suspect is an entry that an arithmetic leaves something of, for a search of what is wrong with it.
type suspect struct {
	*evidence // what is left is left by the arithmetic
	a         *arithmetic
	entry     *diagnose.Entry
	small     *diagnose.Entry
	few       *suspect // of few tokens; nil for a small entry
	own       *judged
	// interrupted is the error of the search for which the entry was prepared; nil while the search goes on.
	interrupted func() error
}

// suspectOf prepares an entry for a search.
func suspectOf(ctx context.Context, e *evidence, a *arithmetic) (*diagnose.Entry, error) {
	s, err := suspectIn(ctx, e, a)
	if err != nil {
		return nil, err
	}
	if some := e.focusAbove(focusWork, focusTokens, focusColumns, false); some.trial != e.trial {
		if s.small, err = suspectOf(ctx, some, a); err != nil {
			return nil, err
		}
	}
	if few := e.few(); few != nil {
		s.few = &suspect{evidence: few, a: a, interrupted: ctx.Err}
		s.entry.Few = &diagnose.Few{Some: *few.call.Some, Left: few.left, Leaves: s.few.Leaves, Far: s.few.Far, Target: s.few.Target}
	}
	return s.entry, nil
}

// suspectIn is an entry in an arithmetic. A judgement of it looks at all elements.
func suspectIn(ctx context.Context, e *evidence, a *arithmetic) (*suspect, error) {
	p, err := e.rewritten(a.rewrites)
	if err != nil {
		return nil, err
	}
	s := &suspect{evidence: e, a: a, interrupted: ctx.Err}
	call := e.call
	call.Arith = e.i.env.Arith
	if a.wide {
		call.In = e.widened()
	}
	var items []*int
	for k := range e.formula.Inputs {
		items = append(items, e.formula.Item(k))
	}
	s.entry = &diagnose.Entry{
		Node: e.node, Program: p, Call: call, Inputs: e.formula.Inputs, Items: items, Weights: e.formula.Weights, Left: e.left, Judge: s,
	}
	s.small = s.entry
	return s, nil
}

// Small is the entry with fewer tokens and columns, where it is large.
func (s *suspect) Small() *diagnose.Entry { return s.small }

// Choices are those of the arithmetic.
func (s *suspect) Choices(p *program.Program) []program.Choice { return s.a.choices(p) }

// Target is the trace's tensor.
func (s *suspect) Target() (y, half []float64) {
	half = make([]float64, len(s.y.Data))
	for i, v := range s.y.Data {
		half[i] = lastPlace(s.d, v) / 2
	}
	return s.y.Data, half
}

// Leaves lists elements that a value does not give, up to a limit: first of those that are left.
func (s *suspect) Leaves(x program.Value, limit int) ([]int, error) {
	if !s.a.open && s.wider() { // what is shared is not written to
		x = program.Value{Shape: x.Shape, Data: slices.Clone(x.Data), Bound: slices.Clone(x.Bound)}
	}
	j, err := s.judge(x, s.a, false)
	if err != nil {
		return nil, err
	}
	if rest := j.outsideOf(s.left, limit); len(rest) >= limit {
		return rest, nil
	}
	return j.outsideOf(nil, limit), nil
}

// Far is the root mean square of the differences of a value and the trace's tensor.
func (s *suspect) Far(x program.Value) float64 {
	sum := 0.0
	for i, v := range x.Data {
		d := v - s.y.Data[i]
		sum += d * d
	}
	return math.Sqrt(sum / float64(max(len(x.Data), 1)))
}

// outsideOf lists elements that are guessed or not consistent among some, nil for all, up to a limit.
func (j *judged) outsideOf(some []int, limit int) []int {
	var at []int
	n := len(some)
	if some == nil {
		n = len(j.y.Data)
	}
	for k := 0; k < n && len(at) < limit; k++ {
		i := k
		if some != nil {
			i = some[k]
		}
		if !j.consistent(i) || j.guessed(i) {
			at = append(at, i)
		}
	}
	return at
}

// Refuses judges another program than the entry's own in few tokens, also in orders of summation.
func (s *suspect) Refuses(p *program.Program, c program.Call) (bool, error) {
	if err := s.interrupted(); s.few == nil || err != nil {
		return false, err
	}
	c.Some = s.few.call.Some
	j, err := s.few.given(context.Background(), p, c)
	return j == nil, err
}

// Explains judges another program than the entry's own, also in orders of summation.
func (s *suspect) Explains(p *program.Program, c program.Call) (all bool, shown, rows int, err error) {
	if err := s.interrupted(); err != nil {
		return false, 0, 0, err
	}
	if s.own == nil && s.i.env.DType == hooks.F32 { // else it is not asked
		if s.own, err = s.in(context.Background(), evaluated{arithmetic: s.a}); err != nil {
			return false, 0, 0, err
		}
	}
	j, err := s.given(context.Background(), p, c)
	if j == nil || err != nil {
		return false, 0, 0, err
	}
	apart := slices.DeleteFunc(slices.Clone(s.left), func(i int) bool { return !j.consistent(i) || !j.definite(i) || !j.apart(s.own, i) })
	rows = s.rowsIn(apart)
	if bits, proof := s.toTheBit(j); !enough(len(apart), rows, false) && proof > len(apart) {
		return true, proof, s.rowsIn(bits), nil
	}
	return true, len(apart), rows, nil
}

// againstABit is how many elements of proof one unequal element takes away. The right edit gives at least 19 of 20 elements to the bit. A wrong edit whose
// bounds hold the trace gives half of them. So an equal element is log2(0.95/0.5) ≈ 1 bit of proof, and an unequal element takes log2(0.5/0.05) < 4
// bits away.
const againstABit = 4

// toTheBit lists the remaining elements that a program gives to the bit. proof is the number of definite elements that would prove as much. In 16 bits a
// rounding point near the midpoint of two numbers leaves every element of the row a choice, so that no element of the row is definite.
func (s *suspect) toTheBit(j *judged) (bits []int, proof int) {
	if j.model == hooks.F32 {
		return nil, 0
	}
	for _, i := range s.left {
		if s.y.Data[i] == j.round(j.x.Data[i]) {
			bits = append(bits, i)
		}
	}
	return bits, len(bits) - againstABit*(len(s.left)-len(bits))
}

// given judges another program than the entry's own, also in orders of summation. It returns nil if the program leaves an element, or if an element is guessed.
func (s *suspect) given(ctx context.Context, p *program.Program, c program.Call) (*judged, error) {
	g := *s.trial
	g.edited, g.call = true, c
	g.formula = &order.Formula{Program: p, Inputs: s.formula.Inputs, Weights: s.formula.Weights}
	g.other = map[program.Rewrite]*order.Formula{s.a.rewrites: g.formula}
	j, rest, _, err := g.strict(ctx, s.a)
	if err != nil || len(rest) > 0 || j.guesses() {
		return nil, err
	}
	return j, nil
}
