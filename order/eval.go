package order

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// Env is what an evaluation takes from outside.
type Env struct {
	program.Arith
	Passes  []Pass                             // the geometry of each forward call
	Read    func(Node) (program.Value, error)  // a leaf, of the shape that the list gives it
	Weights func(Weight) (program.Rows, error) // a checkpoint tensor in the model's dtype
	Begin   func(pass int)                     // told when the first step of a pass is near; may be nil
	Visit   func(Node, program.Value) error    // sees every step, rounded; what it writes into Data, later steps read; may be nil
	Rows    *Rows                              // for [Plan.Run]: large steps are computed by rows, and Rows.Visit sees them, not Visit; nil: no step is
}

// DTypeOf is the dtype of an entry in a model of the given dtype.
func (e *Entry) DTypeOf(model hooks.DType) hooks.DType {
	if e.DType == "" {
		return model
	}
	if d, err := hooks.ParseDType(e.DType); err == nil {
		return d
	}
	return model
}

// Run computes the steps in order, each rounded to its entry's dtype where env emulates one. Values are kept until their
// last use and no longer: what is in memory at one time is what one layer needs. The error is that of an operation, of
// env's functions, or of ctx.
func (p *Plan) Run(ctx context.Context, env Env) error {
	r := newRun(p, env, p.chains(env))
	pass := -1
	for i, n := range p.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n.Pass != pass && env.Begin != nil {
			env.Begin(n.Pass)
		}
		pass = n.Pass
		v, whole, err := r.node(ctx, n)
		if err != nil {
			return err
		}
		r.release(i)
		if !whole {
			continue
		}
		if env.Visit != nil {
			if err := env.Visit(n, v); err != nil {
				return err
			}
		}
		r.keep(n, v, i)
	}
	return nil
}

// node computes a step, rounded. whole is false for a large step, whose rows were shown. A chain is computed where its last step is.
func (r *run) node(ctx context.Context, n Node) (v program.Value, whole bool, err error) {
	c := r.large[n]
	switch {
	case c == nil:
		if v, err = r.step(n); err == nil {
			r.env.Round(v, r.list.At(n).DTypeOf(r.env.DType))
		}
		return v, true, err
	case n != c.last():
		return v, false, nil
	}
	v, err = r.chain(ctx, c)
	return v, c.kind == attentionRows, err
}

// Value computes a cut and returns its last step before the last rounding, with its bound if env has Bounds.
func (p *Plan) Value(ctx context.Context, env Env) (program.Value, error) {
	last := len(p.Steps) - 1
	r := newRun(p, env, nil)
	for i, n := range p.Steps[:last] {
		if err := ctx.Err(); err != nil {
			return program.Value{}, err
		}
		v, err := r.step(n)
		if err != nil {
			return program.Value{}, err
		}
		env.Round(v, p.list.At(n).DTypeOf(env.DType))
		r.release(i)
		r.keep(n, v, i)
	}
	return r.step(p.Steps[last])
}

// run is a plan being computed.
type run struct {
	*Plan
	env   Env
	large map[Node]*chain // by step; nil: every step is computed as a whole
	live  map[Node]program.Value
	last  map[Node]int // the step that reads a node last
	used  [][]Node     // by step: what no later step reads
}

func newRun(p *Plan, env Env, large map[Node]*chain) *run {
	r := &run{Plan: p, env: env, large: large, live: map[Node]program.Value{}, last: map[Node]int{}, used: make([][]Node, len(p.Steps))}
	place := map[Node]int{}
	for i, n := range p.Steps {
		place[n] = i
	}
	for _, n := range p.Steps {
		at := place[n]
		if c := large[n]; c != nil { // it is computed with the last step of its chain
			at = place[c.last()]
		}
		for _, in := range p.list.parents(n) {
			r.last[in] = max(r.last[in], at)
			if c := large[in]; c != nil && c.kind == maskRows { // its rows are computed again
				for _, positions := range p.list.parents(in) {
					r.last[positions] = max(r.last[positions], at)
				}
			}
		}
	}
	for n, at := range r.last {
		r.used[at] = append(r.used[at], n)
	}
	return r
}

// step computes one node from live values, reading leaves as they are needed.
func (r *run) step(n Node) (program.Value, error) {
	e := r.list.At(n)
	var inputs []program.Value
	for _, ref := range e.Inputs {
		at, ok := r.list.parent(n, ref)
		if !ok {
			continue
		}
		v, err := r.input(at)
		if err != nil {
			return program.Value{}, err
		}
		if ref.Index != nil {
			v = item(v, *ref.Index)
		}
		inputs = append(inputs, v)
	}
	return r.compute(n, r.list.Size(n, r.env.Passes), inputs, nil)
}

// compute applies the operation of a node to its inputs; some: to have some of its result.
func (r *run) compute(n Node, shape []int, inputs []program.Value, some *program.Some) (program.Value, error) {
	e := r.list.At(n)
	c := program.Call{Arith: r.env.Arith, Shape: shape, In: inputs, Some: some}
	for _, w := range e.Weights {
		rows, err := r.env.Weights(w)
		if err != nil {
			return program.Value{}, err
		}
		c.W = append(c.W, rows)
	}
	v, err := program.Eval(e.Op, c)
	if err != nil {
		return program.Value{}, fmt.Errorf("computing %s of pass %d: %w", e.Name, n.Pass, err)
	}
	return v, nil
}

// release lets go of what no step after step i reads.
func (r *run) release(i int) {
	for _, n := range r.used[i] {
		delete(r.live, n)
	}
}

// keep stores the value of step i if a later step reads it.
func (r *run) keep(n Node, v program.Value, i int) {
	if r.last[n] > i {
		r.live[n] = v
	}
}

func (r *run) input(n Node) (program.Value, error) {
	if v, ok := r.live[n]; ok {
		return v, nil
	}
	e := r.list.At(n)
	v, err := r.env.Read(n)
	if err != nil {
		return v, fmt.Errorf("reading %s of pass %d: %w", e.Name, n.Pass, err)
	}
	if want := r.list.Size(n, r.env.Passes); !slices.Equal(v.Shape, want) {
		return v, fmt.Errorf("reading %s of pass %d: its shape is %v, not %v", e.Name, n.Pass, v.Shape, want)
	}
	r.live[n] = v
	return v, nil
}

// item is one index of the first axis.
func item(v program.Value, k int) program.Value {
	n := len(v.Data) / v.Shape[0]
	out := program.Value{Shape: v.Shape[1:], Data: v.Data[k*n : (k+1)*n]}
	if v.Bound != nil {
		out.Bound = v.Bound[k*n : (k+1)*n]
	}
	return out
}

// Size is the shape of a node.
func (l *List) Size(n Node, passes []Pass) []int {
	window := 0
	if l.Config != nil {
		window = l.Config.SlidingWindow
	}
	return l.At(n).Size(passes[n.Pass], window)
}

// Passes is the geometry of forward calls with these numbers of tokens.
func Passes(tokens []int) []Pass {
	passes := make([]Pass, len(tokens))
	past := 0
	for i, n := range tokens {
		passes[i] = Pass{Past: past, Tokens: n}
		past += n
	}
	return passes
}
