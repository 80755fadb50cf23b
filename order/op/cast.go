package op

import "github.com/tracediff/tracediff/order/program"

// Cast is R(x). Input: x.
type Cast struct{}

// Kind is "cast".
func (Cast) Kind() string { return "cast" }

// Steps copies: the one R is the entry's.
func (Cast) Steps(_ *program.Builder, in, _ []program.Var) program.Var { return in[0] }

// Exact: the one R is the last.
func (Cast) Exact() {}
