package op

import "github.com/tracediff/tracediff/order/program"

// RoPE turns pairs (j, j+D/2) of the last axis by the angles of the tables, three roundings an element:
//
//	y[j]     = R(R(x[j]·cos) + R(−x[j+D/2]·sin))
//	y[j+D/2] = R(R(x[j+D/2]·cos) + R(x[j]·sin))
//
// and transposes [B,T,h,D] to [B,h,T,D]. Inputs: x, cos, sin.
type RoPE struct{}

// Kind is "rope".
func (RoPE) Kind() string { return "rope" }

// Steps turns.
func (RoPE) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	heads, tokens, d := b.Shape[1], b.Shape[2], b.Shape[3]
	x := b.Permute(b.Reshape(in[0], b.Shape[0], tokens, heads, d), 0, 2, 1, 3)
	cos, sin := b.Permute(in[1], 0, -1, 1, 2), b.Permute(in[2], 0, -1, 1, 2)
	turned := b.Cat(3, b.Neg(b.Slice(x, 3, d/2, d)), b.Slice(x, 3, 0, d/2))
	return b.Add("sum", b.R(b.Mul("x·cos", x, cos)), b.R(b.Mul("turned·sin", turned, sin)))
}
