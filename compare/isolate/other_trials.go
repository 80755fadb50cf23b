package isolate

import (
	"context"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// WithProgram judges the entry by another program than its own in an arithmetic, also in orders of summation. It returns nil if the program leaves an element, or
// if an element is guessed.
func (t *Trial) WithProgram(ctx context.Context, p *program.Program, c program.Call, a *Arithmetic) (*Judgement, error) {
	g := *t
	g.edited, g.Call = true, c
	g.Formula = &order.Formula{Program: p, Inputs: t.Formula.Inputs, Weights: t.Formula.Weights}
	g.other = map[program.Rewrite]*order.Formula{a.Rewrites: g.Formula}
	j, rest, _, err := g.Judge(ctx, a)
	if err != nil || len(rest) > 0 || j.Guesses() {
		return nil, err
	}
	return j, nil
}

// Holding is the trial of the entry with other values, before their last rounding: those of a port with a mistake.
func (t *Trial) Holding(values []float64) *Trial {
	other := *t
	other.Y.Data = make([]float64, len(values))
	for i, x := range values {
		other.Y.Data[i] = floats.Round(t.DType, x)
	}
	return &other
}

// Supposed returns a trial of an uncaptured entry with assumed values, in the order's dtype. read reads the inputs
// of the entry.
func (i *Isolator) Supposed(n order.Node, cut *order.Plan, y program.Value, read func(order.Node) (program.Value, error)) *Trial {
	e := i.list.At(n)
	return &Trial{Isolator: i, Node: n, Cut: cut, Entry: e, Target: Target{Y: y, DType: e.DTypeOf(i.env.DType)}, Prepared: Prepared{Read: read}}
}
