package order

import (
	"context"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// The logits of a long prompt and a large vocabulary do not fit into memory as numbers of 8 bytes. Each row of them is computed from one row of the tensor
// before. So a plan may compute such a tensor some rows at a time.

// Rows is how a plan computes steps that are too large to be in memory as a whole.
type Rows struct {
	Elements int // a step with more elements is computed some rows at a time: so many elements at once, or one row
	// Visit sees some rows of a large step, rounded, then the next, until the last. Of large steps that are computed from one another it sees some rows of
	// each, then the next of each.
	Visit func(n Node, v program.Value, last bool) error
}

// byRows finds the chains of large steps: each row of a step is computed from the same row of the step before, and nothing else reads the step before. It maps the
// last step of a chain to the chain, and every other step of a chain to an empty one.
func (p *Plan) byRows(env Env) map[Node][]Node {
	if env.Rows == nil || p.list.IsRecorded() {
		return nil
	}
	readers := map[Node]int{}
	for _, n := range p.Steps {
		for _, in := range p.list.parents(n) {
			readers[in]++
		}
	}
	chains := map[Node][]Node{}
	for _, n := range p.Steps {
		e, parents := p.list.At(n), p.list.parents(n)
		if len(parents) != 1 || parents[0].Pass != n.Pass || e.Inputs[0].Index != nil || !ofRows(e.Op) || rowAxis(e) < 0 || rowAxis(p.list.At(parents[0])) < 0 ||
			size(p.list.Size(n, env.Passes)) <= env.Rows.Elements {
			continue
		}
		before := chains[parents[0]]
		if before != nil && readers[parents[0]] == 1 {
			chains[parents[0]] = nil
		} else {
			before = nil
		}
		chains[n] = append(before, n)
	}
	for n, chain := range chains { // what another step reads is computed as a whole
		if len(chain) > 0 && readers[n] > 0 {
			for _, n := range chain {
				delete(chains, n)
			}
		}
	}
	return chains
}

// ofRows reports whether an operation computes a row from a row.
func ofRows(o op.Op) bool {
	switch o := o.(type) {
	case op.Linear:
		return !o.Heads
	case op.Softcap, op.Identity:
		return true
	}
	return false
}

// rowAxis is the token axis of a tensor that has one row a token, all axes before it of size 1; −1 for any other tensor.
func rowAxis(e *Entry) int {
	axes := strings.ReplaceAll(e.Axes, " ", "")
	at := strings.IndexRune(axes, AxisToken)
	if strings.Count(axes, string(AxisToken)) != 1 || strings.ContainsRune(axes, AxisKey) || slices.ContainsFunc(e.Shape[:max(at, 0)], func(d Dim) bool { return d != 1 }) {
		return -1
	}
	return at
}

// rows computes a chain of large steps. The last step of the chain is step i of the plan.
func (r *run) rows(ctx context.Context, i int, chain []Node) error {
	first := r.list.parents(chain[0])[0]
	x, err := r.input(first)
	if err != nil {
		return err
	}
	tokens, widest := r.env.Passes[first.Pass].Tokens, 1
	for _, n := range chain {
		widest = max(widest, size(r.list.Size(n, r.env.Passes))/tokens)
	}
	for from, some := 0, max(r.env.Rows.Elements/widest, 1); from < tokens; from += some {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+some, tokens)
		v := rowsFrom(x, rowAxis(r.list.At(first)), from, to)
		for _, n := range chain {
			shape := r.list.Size(n, r.env.Passes)
			shape[rowAxis(r.list.At(n))] = to - from
			if v, err = r.compute(n, shape, []program.Value{v}); err != nil {
				return err
			}
			r.env.Round(v, r.list.At(n).DTypeOf(r.env.DType))
			if err := r.env.Rows.Visit(n, v, to == tokens); err != nil {
				return err
			}
		}
	}
	if r.last[first] <= i {
		delete(r.live, first)
	}
	r.done = i + 1
	return nil
}

// rowsFrom slices a value along an axis: the rows from to to−1. All axes before the axis have size 1.
func rowsFrom(v program.Value, axis, from, to int) program.Value {
	inner := size(v.Shape[axis+1:])
	some := program.Value{Shape: slices.Clone(v.Shape), Data: v.Data[from*inner : to*inner]}
	some.Shape[axis] = to - from
	if v.Bound != nil {
		some.Bound = v.Bound[from*inner : to*inner]
	}
	return some
}
