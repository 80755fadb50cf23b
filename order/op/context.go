package op

import "github.com/tracediff/tracediff/order/program"

// Context is R(probs·v), heads then merged: [B,Hq,T,S]·[B,Hkv,S,D] to [B,T,Hq·D]. Inputs: probs, values. Probabilities beyond the values,
// as that of a sink, are left out.
type Context struct{}

// Kind is "context".
func (Context) Kind() string { return "context" }

// Steps multiplies.
func (Context) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	probs, values := in[0], in[1]
	if keys := values.Shape[2]; probs.Last() > keys {
		probs = b.Slice(probs, 3, 0, keys)
	}
	probs = b.Split(probs, 1, values.Shape[1]) // [B,Hkv,group,T,S]
	return b.Dot("context", "bkgts,bksd->btkgd", probs, values)
}
