// Package programtest makes programs out of formulas that a test writes.
//
// Only tests import the package.
package programtest

import "github.com/tracediff/tracediff/order/program"

// Formula is an operation of a test; its address tells it apart.
type Formula struct {
	steps func(b *program.Builder, in, w []program.Var) program.Var
}

// Weighted is an operation on inputs and weights.
func Weighted(steps func(b *program.Builder, in, w []program.Var) program.Var) *Formula {
	return &Formula{steps}
}

// Of is an operation on inputs only.
func Of(steps func(b *program.Builder, in []program.Var) program.Var) *Formula {
	return &Formula{func(b *program.Builder, in, _ []program.Var) program.Var { return steps(b, in) }}
}

// Kind is the same for all formulas.
func (*Formula) Kind() string { return "formula" }

// Steps adds the formula to a program.
func (f *Formula) Steps(b *program.Builder, in, w []program.Var) program.Var {
	return f.steps(b, in, w)
}

// Program is the program of an operation for a call.
func Program(o program.Op, c program.Call) (*program.Program, error) {
	in, w := make([][]int, len(c.In)), make([][2]int, len(c.W))
	for k, v := range c.In {
		in[k] = v.Shape
	}
	for k, m := range c.W {
		w[k][0], w[k][1] = m.Size()
	}
	return program.Of(o, program.Op.Kind, 0, c.Shape, in, w)
}

// Tensor is a value without bounds.
func Tensor(data []float64, shape ...int) program.Value {
	return program.Value{Shape: shape, Data: data}
}
