package op

// RoPE turns pairs (j, j+D/2) of the last axis by the angles of the tables, three roundings an element:
//
//	y[j]     = R(R(x[j]·cos) + R(−x[j+D/2]·sin))
//	y[j+D/2] = R(R(x[j+D/2]·cos) + R(x[j]·sin))
//
// and transposes [B,T,h,D] to [B,h,T,D]. Inputs: x, cos, sin.
type RoPE struct{}

// Kind is "rope".
func (RoPE) Kind() string { return "rope" }

// Eval turns. Bound: by running error analysis, two products with an R each and their sum.
func (RoPE) Eval(c Call) (Value, error) {
	x, cos, sin := c.In[0], c.In[1], c.In[2]
	heads, tokens, d := c.Shape[1], c.Shape[2], c.Shape[3]
	return c.each(func(i int) Num {
		h, t, j := i/d/tokens, i/d%tokens, i%d
		row := (t*heads + h) * d
		other, sign := j+d/2, -1.0
		if j >= d/2 {
			other, sign = j-d/2, 1
		}
		turned := x.at(row + other)
		turned.V *= sign
		return c.add(c.R(c.mul(x.at(row+j), cos.at(t*d+j))), c.R(c.mul(turned, sin.at(t*d+j))))
	})
}
