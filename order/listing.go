package order

import (
	"fmt"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// The pass that is listed has more tokens than a model has channels or words, and there were more before it, so that every
// size says by itself what it is.
const (
	listedTokens = 1<<21 + 17
	listedPast   = 1<<26 + 19
)

// Listing is the program of an entry, to be read: its steps for a pass of T tokens after a first pass of P tokens. It is nil
// for an argument of the model, which nothing computes. The error is that of a name without an operation.
func (l *List) Listing(name string) ([]program.Line, error) {
	i := l.Index(name)
	if i < 0 || l.Entries[i].Op == nil {
		return nil, fmt.Errorf("%s has no operation", name)
	}
	e := &l.Entries[i]
	if _, given := e.Op.(op.Given); given {
		return nil, nil
	}
	node := Node{i, 1}
	cut, err := l.Cut(func(n Node) bool { return n != node }, node)
	if err != nil {
		return nil, err
	}
	f, err := cut.Formula([]Pass{{Tokens: listedPast}, {Past: listedPast, Tokens: listedTokens}}, hooks.BF16)
	if err != nil {
		return nil, err
	}
	sliding := 0
	if l.Config != nil {
		sliding = (&Entry{Shape: []Dim{SSliding}}).Size(Pass{listedPast, listedTokens}, l.Config.SlidingWindow)[0]
	}
	lines := f.Listing(func(n int) string { return listedSize(n, sliding) }, func(s *program.Step) string {
		if s.Prim == program.Input {
			return e.Inputs[s.Index()].String()
		}
		return e.Weights[s.Index()].Name
	})
	result := &lines[len(lines)-1]
	switch d := e.DTypeOf(hooks.BF16); {
	case d == hooks.BF16:
		result.Round = "R"
	case d != hooks.F32 && d.Float():
		result.Round = d.String()
	}
	return lines, nil
}

// String is the name, with the stream of a stack that is taken and with what is of the pass before.
func (r Ref) String() string {
	s := r.Name
	if r.Index != nil {
		s += fmt.Sprintf("[%d]", *r.Index)
	}
	if r.Prev {
		s += " of the pass before"
	}
	return s
}

// listedSize is a size in the pass that is listed.
func listedSize(n, sliding int) string {
	switch n {
	case listedTokens:
		return T.String()
	case listedPast + listedTokens:
		return SFull.String()
	case sliding:
		return SSliding.String()
	}
	name := ""
	switch {
	case n > listedPast/2:
		name, n = "P", n-listedPast
	case n > listedTokens/2:
		name, n = T.String(), n-listedTokens
	default:
		return fmt.Sprint(n)
	}
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s%+d", name, n)
}
