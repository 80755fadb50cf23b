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
	r := newRun(p, env)
	large := p.byRows(env)
	pass := -1
	for i, n := range p.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n.Pass != pass && env.Begin != nil {
			env.Begin(n.Pass)
		}
		pass = n.Pass
		if chain, is := large[n]; is {
			if len(chain) > 0 {
				if err := r.rows(ctx, i, chain); err != nil {
					return err
				}
			}
			continue
		}
		v, err := r.step(n)
		if err != nil {
			return err
		}
		e := p.list.At(n)
		env.Round(v, e.DTypeOf(env.DType))
		if env.Visit != nil {
			if err := env.Visit(n, v); err != nil {
				return err
			}
		}
		r.keep(n, v, i)
	}
	return nil
}

// Value computes a cut and returns its last step before the last rounding, with its bound if env has Bounds.
func (p *Plan) Value(ctx context.Context, env Env) (program.Value, error) {
	last := len(p.Steps) - 1
	inner := &Plan{Leaves: p.Leaves, Steps: p.Steps[:last], list: p.list}
	r := newRun(p, env)
	for i, n := range inner.Steps {
		if err := ctx.Err(); err != nil {
			return program.Value{}, err
		}
		v, err := r.step(n)
		if err != nil {
			return program.Value{}, err
		}
		env.Round(v, p.list.At(n).DTypeOf(env.DType))
		r.keep(n, v, i)
	}
	return r.step(p.Steps[last])
}

// run is a plan being computed.
type run struct {
	*Plan
	env  Env
	live map[Node]program.Value
	last map[Node]int // the step that uses a node last
	done int
}

func newRun(p *Plan, env Env) *run {
	r := &run{Plan: p, env: env, live: map[Node]program.Value{}, last: map[Node]int{}}
	for i, n := range p.Steps {
		for _, in := range p.list.parents(n) {
			r.last[in] = i
		}
	}
	return r
}

// step computes one node from live values, reading leaves as they are needed, and lets go of inputs that nothing else
// uses.
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
	v, err := r.compute(n, r.list.Size(n, r.env.Passes), inputs)
	if err != nil {
		return program.Value{}, err
	}
	for _, in := range r.list.parents(n) {
		if r.last[in] == r.done {
			delete(r.live, in)
		}
	}
	return v, nil
}

// compute applies the operation of a node to its inputs.
func (r *run) compute(n Node, shape []int, inputs []program.Value) (program.Value, error) {
	e := r.list.At(n)
	c := program.Call{Arith: r.env.Arith, Shape: shape, In: inputs}
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

// keep stores the value of step i if a later step uses it.
func (r *run) keep(n Node, v program.Value, i int) {
	if r.last[n] > i {
		r.live[n] = v
	}
	r.done = i + 1
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
