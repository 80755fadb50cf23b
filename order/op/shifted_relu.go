package op

// ShiftedReLU is max(0, R(x − cutoff)): what survives is x − cutoff, not x. Inputs: x [B,T,n], cutoff [B,T,1].
type ShiftedReLU struct{}

// Kind is "shifted_relu".
func (ShiftedReLU) Kind() string { return "shifted_relu" }

// Eval subtracts. Rounding is monotone and keeps 0, so that the R may come after the maximum. Bound: E_x + E_cutoff
// and the rounding of one step, as far as it reaches above 0, see [larger].
func (ShiftedReLU) Eval(c Call) (Value, error) {
	x, cutoff := c.In[0], c.In[1]
	n := x.last()
	return c.each(func(i int) Num { return larger(Num{}, c.sub(x.at(i), cutoff.at(i/n))) })
}

// OperandScale is a part of the input's norm: most of it is cut off.
func (ShiftedReLU) OperandScale() (fraction float64, words string) { return cutOff, ofCutInput }

// Unsaturated is false: next to the cutoff all that is left is the roundings of what is subtracted.
func (ShiftedReLU) Unsaturated(float64) bool { return false }

// Shares is nothing.
func (ShiftedReLU) Shares() (s Shared, entry bool) { return SharedElement, false }
