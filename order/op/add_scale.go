package op

import "math"

// AddScale is R(R(a + b) · By), or R(R(a + b) / By) with Divide. Inputs: a, b.
type AddScale struct {
	By     Const `json:"by"`
	Divide bool  `json:"divide,omitempty"`
}

// Kind is "add_scale".
func (AddScale) Kind() string { return "add_scale" }

// Eval adds, then scales. Bound: by running error analysis, two steps; the R between them turns an interval into the
// numbers of the dtype that lie in it, see [Arith.R].
func (o AddScale) Eval(c Call) (Value, error) {
	by := o.By.in(c.Arith)
	return c.each(func(i int) Num {
		sum := c.R(c.add(c.In[0].at(i), c.In[1].at(i)))
		if o.Divide {
			return c.div(sum, by)
		}
		return c.mul(sum, by)
	})
}

// OperandScale is the norm of the terms, scaled as their sum.
func (o AddScale) OperandScale() (fraction float64, words string) {
	if o.Divide {
		return 1 / math.Abs(o.By.Value), ofTermsBy
	}
	return math.Abs(o.By.Value), ofTermsBy
}
