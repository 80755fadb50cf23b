package op

import "github.com/tracediff/tracediff/order/program"

// Identity hands its input on. Input: x.
type Identity struct{}

// Kind is "identity".
func (Identity) Kind() string { return "identity" }

// Steps copies.
func (Identity) Steps(_ *program.Builder, in, _ []program.Var) program.Var { return in[0] }

// Exact: elements are copied.
func (Identity) Exact() {}

// Keys are handed on.
func (Identity) Keys() Keys { return HandOnKeys }
