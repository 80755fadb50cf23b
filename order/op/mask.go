package op

import (
	"github.com/tracediff/tracediff/order/program"
)

// Mask is the additive attention mask [1, 1, T, S]: 0 where query q may attend to key k, the lowest finite number of the dtype elsewhere. It
// may when k ≤ q and, with a Window, k > q − Window. Input: positions; the last is the position of the last key.
type Mask struct {
	Window int `json:"window,omitempty"`
}

// Kind is "mask".
func (Mask) Kind() string { return "mask" }

// Steps compares positions.
func (o Mask) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Mask(in[0], o.Window)
}

// Exact: there is nothing to round in a mask.
func (Mask) Exact() {}
