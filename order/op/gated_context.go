package op

import "github.com/tracediff/tracediff/order/program"

// GatedContext is R(R(probs·v) ⊙ R(sigmoid(gate))), heads merged: attention whose output has a gate. Inputs: probs, values, gate
// [B,T,Hq·D] or [B,T,Hq], or with From gates that stand in each head of [B,T,Hq·n] from there on.
type GatedContext struct {
	From int `json:"from,omitempty"`
}

// Kind is "gated_context".
func (GatedContext) Kind() string { return "gated_context" }

// Steps multiplies, and gates.
func (o GatedContext) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	c := b.R(Context{}.Steps(b, in, nil)) // [B,T,Hkv,group,D]
	s := c.Shape
	gate := in[2]
	if gate.Last() == s[2]*s[3] { // one for each head
		gate = b.Permute(b.Split(gate, 2, s[2]), 0, 1, 2, 3, -1)
	} else if o.From > 0 {
		heads := s[2] * s[3]
		gate = b.Slice(b.Split(gate, 2, heads), 3, o.From, o.From+s[4])
		gate = b.Split(gate, 2, s[2])
	} else {
		gate = b.Reshape(gate, s...)
	}
	return b.Mul("product", c, b.R(sigmoid(b, gate)))
}
