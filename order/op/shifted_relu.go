package op

import "github.com/tracediff/tracediff/order/program"

// ShiftedReLU is max(0, R(x − cutoff)): what survives is x − cutoff, not x. Inputs: x [B,T,n], cutoff [B,T,1].
type ShiftedReLU struct{}

// Kind is "shifted_relu".
func (ShiftedReLU) Kind() string { return "shifted_relu" }

// Steps subtracts. Rounding is monotone and keeps 0, so that the R may come after the maximum.
func (ShiftedReLU) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Max(b.Literal(0), b.Sub("difference", in[0], in[1]))
}

// OperandScale is a part of the input's norm: most of it is cut off.
func (ShiftedReLU) OperandScale() (fraction float64, words string) { return cutOff, ofCutInput }
