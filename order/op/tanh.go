package op

import "github.com/tracediff/tracediff/order/program"

// Tanh is R(tanh x), in float32. Input: x.
type Tanh struct{}

// Kind is "tanh".
func (Tanh) Kind() string { return "tanh" }

// Steps applies the function.
func (Tanh) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Tanh("tanh", in[0])
}
