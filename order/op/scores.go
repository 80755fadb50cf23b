package op

import "github.com/tracediff/tracediff/order/program"

// Scores is R(R(q·kᵀ) · Scale); query head h reads KV head ⌊h·Hkv/Hq⌋. Inputs: q [B,Hq,T,D], keys [B,Hkv,S,D]. With Merged q is [B,T,Hq·D],
// the layout of its projection, and with Divide the product is divided by the scale. A scale of 0 means no scale.
type Scores struct {
	Scale  float64 `json:"scale"`
	Merged bool    `json:"merged,omitempty"`
	Divide bool    `json:"divide,omitempty"`
}

// Kind is "scores".
func (Scores) Kind() string { return "scores" }

// Steps multiplies; the scale is a Python number.
func (o Scores) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	q, keys := in[0], in[1]
	if o.Merged {
		q = b.Permute(b.Reshape(q, b.Shape[0], b.Shape[2], b.Shape[1], keys.Last()), 0, 2, 1, 3)
	}
	q = b.Split(q, 1, keys.Shape[1]) // [B,Hkv,group,T,D]
	switch {
	case o.Scale == 0:
		return b.Dot("product", "bkgtd,bksd->bkgts", q, keys)
	case o.Divide:
		return b.Div("quotient", b.R(b.Dot("product", "bkgtd,bksd->bkgts", q, keys)), b.Scalar("scale", o.Scale))
	}
	return b.ScaledDot("product", "bkgtd,bksd->bkgts", q, keys, b.Scalar("scale", o.Scale))
}
