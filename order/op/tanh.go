package op

import "math"

// Tanh is R(tanh x), in float32. Input: x.
type Tanh struct{}

// Kind is "tanh".
func (Tanh) Kind() string { return "tanh" }

// Eval applies the function. Bound: its change over the interval of x and the library's error, see [Arith.function].
func (Tanh) Eval(c Call) (Value, error) {
	return c.each(func(i int) Num { return c.function(math.Tanh, c.In[0].at(i)) })
}
