package order

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// Formula is one program for a cut, with the sites of all operations in the cut.
type Formula struct {
	*program.Program
	Inputs  []Node   // the leaves, by the number of the program's input
	Weights []Weight // by the number of its weight
	items   []*int   // the index of an input on its tensor's first axis; nil for the whole tensor
	parts   []Part
}

// Part is what one entry of a cut has of its formula.
type Part struct {
	Node
	In, W    []program.Var
	Out      program.Var // rounded, but for that of the last part
	From, To int         // its steps
	Inputs   []Node      // by the number of the input
	Items    []*int      // by the number of the input: the index on its first axis that the operation reads; nil if the operation reads the whole tensor
}

// Parts is [Plan.FormulaOf] with what each entry of the cut has of it, in their order. The program is not shared. Additions are in
// the reference's order, since a sum of terms of several entries is no entry's part.
func (p *Plan) Parts(passes []Pass, model hooks.DType, rewrites program.Rewrite) (*Formula, []Part, error) {
	f, err := p.formula(passes, model, rewrites.Steps(), nil)
	if err != nil {
		return nil, nil, err
	}
	return f, f.parts, nil
}

// Item returns the index of input k on its tensor's first axis; nil if the input is the whole tensor. The program may
// read a part of the whole tensor.
func (f *Formula) Item(k int) *int {
	if k >= len(f.items) {
		return nil
	}
	return f.items[k]
}

// ErrOwn says that an operation computes its result itself and has no formula: see [program.Own].
var ErrOwn = errors.New("its operation is not made of steps")

// Formula is the program of the last step of a cut. The rounding of every entry between is part of it; the last one is the
// caller's. The error is [ErrOwn], or that of shapes that do not go together.
func (p *Plan) Formula(passes []Pass, model hooks.DType) (*Formula, error) {
	return p.FormulaOf(passes, model, 0, nil)
}

// FormulaOf is [Plan.Formula] with some formulas in another order, and with other operations in place of those of the entries;
// nil for their own.
func (p *Plan) FormulaOf(passes []Pass, model hooks.DType, rewrites program.Rewrite, other func(op.Op) op.Op) (*Formula, error) {
	if len(p.Steps) == 1 {
		return p.single(passes, rewrites, other)
	}
	return p.formula(passes, model, rewrites, other)
}

// formula is that of several operations.
func (p *Plan) formula(passes []Pass, model hooks.DType, rewrites program.Rewrite, other func(op.Op) op.Op) (*Formula, error) {
	f := &Formula{}
	b := program.NewBuilder()
	b.Rewrites = rewrites
	results := map[Node]program.Var{}
	last := len(p.Steps) - 1
	var out program.Var
	for i, n := range p.Steps {
		e := p.list.At(n)
		if _, own := e.Op.(program.Own); own {
			return nil, fmt.Errorf("%s: %w", e.Name, ErrOwn)
		}
		var in, w []program.Var
		part := Part{Node: n}
		for _, ref := range e.Inputs {
			at, ok := p.list.parent(n, ref)
			if !ok {
				continue
			}
			part.Inputs, part.Items = append(part.Inputs, at), append(part.Items, ref.Index)
			v, ok := results[at]
			if !ok {
				v = b.Input(len(f.Inputs), p.list.Size(at, passes))
				f.Inputs = append(f.Inputs, at)
				results[at] = v
			}
			if ref.Index != nil {
				v = b.Take(v, 0, *ref.Index)
			}
			in = append(in, v)
		}
		for _, weight := range e.Weights {
			w = append(w, b.Weight(f.weight(weight), rowsOf(weight.Shape)))
		}
		o := e.Op
		if other != nil {
			o = other(o)
		}
		part.In, part.W, part.From = in, w, b.Len()
		b.Part = i + 1
		out = b.Apply(o, op.Form(o), p.list.Size(n, passes), in, w)
		part.To = b.Len()
		if i < last {
			if to := e.DTypeOf(model); to.Float() { // indexes and flags are not rounded
				r, err := roundingOf(to, model)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", e.Name, err)
				}
				out = b.RoundTo(out, r)
			}
		}
		b.Part = 0
		results[n] = out
		part.Out = out
		f.parts = append(f.parts, part)
	}
	b.Tables(model == hooks.F32, op.RecordedFrequencies)
	made, err := b.Program(out)
	if err == nil {
		f.Program, err = rewrite.Apply(made, rewrites)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.list.At(p.Steps[last]).Name, err)
	}
	return f, nil
}

// single is the formula of one operation. Entries with the same operation and shapes share the program.
func (p *Plan) single(passes []Pass, rewrites program.Rewrite, other func(op.Op) op.Op) (*Formula, error) {
	n := p.Steps[0]
	e := p.list.At(n)
	if _, own := e.Op.(program.Own); own {
		return nil, fmt.Errorf("%s: %w", e.Name, ErrOwn)
	}
	f := &Formula{}
	var in [][]int
	for _, ref := range e.Inputs {
		at, ok := p.list.parent(n, ref)
		if !ok {
			continue
		}
		shape := p.list.Size(at, passes)
		if ref.Index != nil {
			shape = shape[1:]
		}
		f.Inputs, in = append(f.Inputs, at), append(in, shape)
		f.items = append(f.items, ref.Index)
	}
	var w [][2]int
	for _, weight := range e.Weights {
		f.Weights, w = append(f.Weights, weight), append(w, rowsOf(weight.Shape))
	}
	o := e.Op
	if other != nil {
		o = other(o)
	}
	var err error
	if f.Program, err = rewrite.Of(o, op.Form, rewrites, p.list.Size(n, passes), in, w); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return f, nil
}

// weight is the number of a weight of the formula.
func (f *Formula) weight(w Weight) int {
	for i := range f.Weights {
		if f.Weights[i].Name == w.Name {
			return i
		}
	}
	f.Weights = append(f.Weights, w)
	return len(f.Weights) - 1
}

// rowsOf is the size of a weight as it is read.
func rowsOf(shape []int) [2]int {
	n, last := 1, 1
	for _, d := range shape {
		n, last = n*d, d
	}
	return [2]int{n / max(last, 1), last}
}

// roundingOf is the rounding point that a dtype is.
func roundingOf(d, model hooks.DType) (program.Rounding, error) {
	switch d {
	case model:
		return program.Model, nil
	case hooks.F32:
		return program.Single, nil
	case hooks.F16:
		return program.Half, nil
	case hooks.F64:
		return program.None, nil
	}
	return 0, fmt.Errorf("no step rounds to %s in a model of %s", d, model)
}

// Call is what the formula is evaluated on: its leaves, read by env.
func (f *Formula) Call(l *List, env Env) (program.Call, error) {
	c := program.Call{Arith: env.Arith, Shape: f.Out.Shape}
	for k, n := range f.Inputs {
		e := l.At(n)
		v, err := env.Read(n)
		if err != nil {
			return c, fmt.Errorf("reading %s of pass %d: %w", e.Name, n.Pass, err)
		}
		if want := l.Size(n, env.Passes); !slices.Equal(v.Shape, want) {
			return c, fmt.Errorf("reading %s of pass %d: its shape is %v, not %v", e.Name, n.Pass, v.Shape, want)
		}
		if f.items != nil && f.items[k] != nil {
			v = item(v, *f.items[k])
		}
		c.In = append(c.In, v)
	}
	for _, w := range f.Weights {
		rows, err := env.Weights(w)
		if err != nil {
			return c, err
		}
		c.W = append(c.W, rows)
	}
	return c, nil
}
