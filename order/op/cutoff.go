package op

// Cutoff is R(mean + R(std · Multiplier)). Inputs: mean, std.
type Cutoff struct {
	Multiplier Const `json:"multiplier"`
}

// Kind is "cutoff".
func (Cutoff) Kind() string { return "cutoff" }

// Eval follows the formula. Bound: by running error analysis, two steps with an R between them.
func (o Cutoff) Eval(c Call) (Value, error) {
	by := o.Multiplier.in(c.Arith)
	return c.each(func(i int) Num { return c.add(c.In[0].at(i), c.R(c.mul(c.In[1].at(i), by))) })
}

// Unsaturated is false: mean and multiple of the deviation cancel, and their roundings are a shift.
func (Cutoff) Unsaturated(float64) bool { return false }

// Shares is its value.
func (Cutoff) Shares() (s Shared, entry bool) { return SharedValue, true }
