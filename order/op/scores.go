package op

import "github.com/tracediff/tracediff/order/program"

// Scores is R(R(q·kᵀ) · Scale); query head h reads key head ⌊h·Hkv/Hq⌋. Inputs: q [B,Hq,T,D], keys [B,Hkv,S,D].
type Scores struct {
	Scale float64 `json:"scale"`
}

// Kind is "scores".
func (Scores) Kind() string { return "scores" }

// Steps multiplies; the scale is a Python number.
func (o Scores) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	keys := in[1]
	q := b.Split(in[0], 1, keys.Shape()[1]) // [B,Hkv,group,T,D]
	return b.ScaledDot("product", "bkgtd,bksd->bkgts", q, keys, b.Scalar("scale", o.Scale))
}
