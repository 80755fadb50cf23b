package op

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// Mask is the additive attention mask [1, 1, T, S]: 0 where query q may see key k, the lowest finite number of the
// dtype elsewhere. It may when k ≤ q and, with a Window, k > q − Window. Input: positions, of which the last is the
// position of the last key.
type Mask struct {
	Window int `json:"window,omitempty"`
}

// Kind is "mask".
func (Mask) Kind() string { return "mask" }

// Eval compares positions, exactly: there is no bound.
func (o Mask) Eval(c Call) (Value, error) {
	positions, keys := c.In[0].Data, c.Shape[len(c.Shape)-1]
	if len(positions) == 0 {
		return Value{Shape: c.Shape}, nil
	}
	first := positions[len(positions)-1] + 1 - float64(keys)
	return c.each(func(i int) Num {
		q, k := positions[i/keys], first+float64(i%keys)
		if k <= q && (o.Window == 0 || k > q-float64(o.Window)) {
			return Num{}
		}
		return Num{V: c.lowest()}
	})
}

// lowest is the lowest finite number of the dtype, in exact arithmetic of float64.
func (a Arith) lowest() float64 {
	switch {
	case !a.Emulated:
		return -math.MaxFloat64
	case a.DType == hooks.BF16:
		return -0x1.fep127
	case a.DType == hooks.F16:
		return -65504
	}
	return -math.MaxFloat32
}

// Exact: there is nothing to round in a mask.
func (Mask) Exact() {}
