package program

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// Own is an operation that computes itself: one that nothing is known of but its results.
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
