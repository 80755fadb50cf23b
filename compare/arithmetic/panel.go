package arithmetic

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order/program"
)

// member is an entry of the panel.
type member struct {
	*isolate.Evidence // or some tokens and columns of it
	whole             *isolate.Evidence
	engines           map[program.Rewrite]*program.Search
}

// engine is what evaluates the entry's formula in an order of steps.
func (m *member) engine(r program.Rewrite) (*program.Search, error) {
	if e := m.engines[r]; e != nil {
		return e, nil
	}
	p, err := m.Rewritten(r)
	if err != nil {
		return nil, err
	}
	call := m.Call
	call.Arith = m.Isolator.Env().Arith
	m.engines[r], err = p.Search(call)
	return m.engines[r], err
}

// join takes an entry into the panel.
func (s *search) join(e *isolate.Evidence) {
	s.panel = append(s.panel, &member{e.Focus(), e, map[program.Rewrite]*program.Search{}})
}

// cost is about how long an arithmetic takes, as the account of a search for a mistake has it.
func (s *search) cost() int {
	n := hypothesisWork
	for _, m := range s.panel {
		n += m.Formula.Time() + program.StepTime*len(m.Formula.Steps)
	}
	return n
}

// leaves counts the elements of the panel unexplained by an arithmetic (left), and its distance from explaining the
// panel (far): left plus the elements explained only by an open choice at a rounding point. Without the second
// term, an arithmetic with many rounding points would be near to everything.
func (s *search) leaves(ctx context.Context, a *isolate.Arithmetic) (left, far int, err error) {
	for _, m := range s.panel {
		n, vague, err := m.leaves(ctx, a, s.inOrder)
		if err != nil {
			return 0, 0, err
		}
		left, far = left+n, far+n+vague
		// The arithmetic is already farther than the nearest ones and than its origin.
		if left > 0 && len(s.best) == ranks && far > s.best[ranks-1].far && far >= s.bar {
			break
		}
	}
	return left, far, nil
}

// leaves counts the elements of one entry that an arithmetic does not give, and the elements for which the arithmetic has a choice. With inOrder, other
// orders of summation give no element.
func (m *member) leaves(ctx context.Context, a *isolate.Arithmetic, inOrder bool) (left, vague int, err error) {
	engine, err := m.engine(a.Rewrites)
	if err != nil {
		return 0, 0, err
	}
	p, err := m.Rewritten(a.Rewrites)
	if err != nil {
		return 0, 0, err
	}
	c := a.Choices(p)
	if c == nil {
		c = p.Own()
	}
	x, err := engine.Eval(c)
	if err != nil {
		return 0, 0, err
	}
	if !a.Open && m.Wider() { // what is shared is not written to
		x = program.Value{Shape: x.Shape, Data: slices.Clone(x.Data), Bound: slices.Clone(x.Bound)}
	}
	j, err := m.Hold(x, a, false)
	if err != nil {
		return 0, 0, err
	}
	off := j.Outside()
	if n := len(off); n > 0 && 8*n < len(m.Left) && !inOrder { // perhaps only an order of summation
		if off, _, err = isolate.Replay(ctx, m.Evidence.Trial, j, a, off); err != nil {
			return 0, 0, err
		}
	}
	for _, i := range m.Left {
		if !j.Definite(i) {
			vague++
		}
	}
	return len(off), vague, nil
}

// holds lists the entries that an arithmetic explains. It ends once the arithmetic has failed in more than half of the
// entries: such an arithmetic decides nothing.
func (s *search) holds(ctx context.Context, a *isolate.Arithmetic) (held []*isolate.Evidence, err error) {
	for k, e := range s.entries {
		if failed := k - len(held); mostOf(failed, len(s.entries)) {
			break
		}
		if slices.ContainsFunc(s.panel, func(m *member) bool { return m.whole == e && m.Evidence == e }) {
			held = append(held, e)
			continue
		}
		_, rest, _, err := e.Judge(ctx, a)
		if err != nil {
			return nil, err
		}
		if len(rest) == 0 {
			held = append(held, e)
		}
	}
	return held, nil
}
