package program

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// Own is an operation that computes its result itself: the program knows only the results.
type Own interface {
	Eval(c Call) (Value, error)
}

// Eval evaluates one operation; its last rounding is left to the caller, see [Arith.Round]. The error is that of inputs or
// a shape that the operation cannot have, or of [Program.Eval].
func Eval(o Op, c Call) (Value, error) {
	if own, ok := o.(Own); ok {
		return own.Eval(c)
	}
	in, w := make([][]int, len(c.In)), make([][2]int, len(c.W))
	for k, v := range c.In {
		in[k] = v.Shape
	}
	for k, m := range c.W {
		w[k][0], w[k][1] = m.Size()
	}
	p, err := Of(o, Op.Kind, 0, c.Shape, in, w)
	if err != nil {
		return Value{}, err
	}
	return p.Eval(c)
}

// programs are those of single operations, by operation and shapes.
var programs struct {
	sync.Mutex
	of map[key]*Program
}

type key struct {
	op           Op
	form, shapes string
	rewrites     Rewrite
}

// maxPrograms is how many are kept: every pass of a long decode has shapes of its own.
const maxPrograms = 1 << 12

// Of is the program of one operation on inputs and weights of these shapes; a weight of one row is a vector. Form says what
// operations that are rounded alike have in common, rewrites which formulas are built in another order: it has no order of
// additions and no kernel. The program is shared. The error is that of shapes that the operation cannot have.
func Of(o Op, form func(Op) string, rewrites Rewrite, shape []int, in [][]int, w [][2]int) (*Program, error) {
	k := key{o, form(o), shapes(shape, in, w), rewrites.Steps()}
	programs.Lock()
	defer programs.Unlock()
	if p, ok := programs.of[k]; ok {
		return p, nil
	}
	b := NewBuilder()
	b.Rewrites = k.rewrites
	var ins, ws []Var
	for k, s := range in {
		ins = append(ins, b.Input(k, s))
	}
	for k, s := range w {
		ws = append(ws, b.Weight(k, s))
	}
	p, err := b.Program(b.Apply(o, k.form, shape, ins, ws))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Kind(), err)
	}
	if programs.of == nil || len(programs.of) >= maxPrograms {
		programs.of = map[key]*Program{}
	}
	programs.of[k] = p
	return p, nil
}

// shapes tells shapes apart.
func shapes(shape []int, in [][]int, w [][2]int) string {
	b := make([]byte, 0, 64)
	add := func(s []int) {
		for _, n := range s {
			b = binary.AppendVarint(b, int64(n))
		}
		b = binary.AppendVarint(b, -1)
	}
	add(shape)
	for _, s := range in {
		add(s)
	}
	b = binary.AppendVarint(b, -2)
	for _, s := range w {
		add(s[:])
	}
	return string(b)
}

// Together evaluates calls of several programs, for example of one operation in several passes. Each program is a
// product with the same weight, and Together reads this weight once. Every program gets the values and bounds of a
// separate evaluation. ok is false, and nothing is evaluated, if a program is not a product, or if calls differ in
// more than the number of rows.
func Together(programs []*Program, calls []Call) (results []Value, ok bool, err error) {
	first, step, ok := programs[0], productOf(programs[0]), true
	var x, held []float64
	tokens := 0
	for k, p := range programs {
		c := &calls[k]
		if !ok || step < 0 || productOf(p) != step || !c.plain(p, step) || !sameArith(c.Arith, calls[0].Arith) || (c.Held == nil) != (calls[0].Held == nil) {
			return nil, false, nil
		}
		in := c.In[p.Steps[p.Steps[step].Args[0].Step].Index()]
		x = append(x, in.Data...)
		if c.Held != nil {
			ok = c.Held.DType == calls[0].Held.DType && len(c.Held.Data) == Size(p.Out.Shape)
			held = append(held, c.Held.Data...)
		}
		tokens += Size(p.Out.Shape)
	}
	if !ok {
		return nil, false, nil
	}
	r := &run{p: first, c: &calls[0], a: calls[0].Arith, values: make([]operand, len(first.Steps))}
	out := r.room(tokens)
	h := calls[0].Held
	if h != nil {
		h = &Held{held, h.DType, h.Alone}
	}
	if err := r.multiply(step, operand{v: x}, out, h); err != nil {
		return nil, true, err
	}
	for _, p := range programs {
		n := Size(p.Out.Shape)
		v := Value{Shape: p.Out.Shape, Data: out.v[:n:n], Columns: r.columns}
		if out.v = out.v[n:]; out.e != nil {
			v.Bound, out.e = out.e[:n:n], out.e[n:]
		}
		results = append(results, v)
	}
	return results, true, nil
}

// productOf is the step of a program that is nothing but a product of all rows of an input with a weight; −1 of any other.
func productOf(p *Program) int {
	i := p.Out.Step
	s := &p.Steps[i]
	if s.Prim != Affine || len(s.Args) != 2 || len(p.stages) != 1 || !p.Out.Plain() || p.Out.Off != 0 || Size(p.Out.Shape) != Size(s.Shape) {
		return -1
	}
	if x := s.Args[0]; p.Steps[x.Step].Prim != Input || !x.Plain() || x.Off != 0 || Size(x.Shape) != Size(p.Steps[x.Step].Shape) {
		return -1
	}
	return i
}

// plain reports whether a call is of exact inputs of the program's shapes, in its own arithmetic.
func (c *Call) plain(p *Program, step int) bool {
	at := p.Steps[p.Steps[step].Args[0].Step].Index()
	w := p.Steps[p.Steps[step].Args[1].Step].Index()
	if at >= len(c.In) || w >= len(c.W) || c.Choices != nil || c.In[at].Bound != nil && !zero(c.In[at].Bound) || c.In[at].Terms != nil {
		return false
	}
	rows, cols := c.W[w].Size()
	weight := p.Steps[p.Steps[step].Args[1].Step].Shape
	return len(c.In[at].Data) == Size(p.Steps[step].Args[0].Shape) && rows*cols == Size(weight) && cols == weight[len(weight)-1]
}

// sameArith reports whether two arithmetics without choices are the same.
func sameArith(a, b Arith) bool {
	return a.DType == b.DType && a.Emulated == b.Emulated && a.Bounds == b.Bounds && a.Rigorous == b.Rigorous && a.Sum == nil && b.Sum == nil &&
		a.Together == b.Together && a.Hull == b.Hull && a.HullLast == b.HullLast && slices.Equal(a.Choices, b.Choices)
}
