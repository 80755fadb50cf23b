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

// Unsaturated holds for arguments up to about a half.
func (Tanh) Unsaturated(y float64) bool { return math.Abs(y) < 0.5 }

// Shares is nothing.
func (Tanh) Shares() (s Shared, entry bool) { return SharedElement, false }
